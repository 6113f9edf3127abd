"""What every remote root must do, whatever is behind it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.remote.address import RemoteRoot
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.probing import probe

NAMES = ("objects/t/1/" + "a" * 64, "published/t/1/x.json", "objects/t/10/" + "b" * 64)


@pytest.fixture
def place(root: RemoteRoot) -> Place:
    return Place(root)


def test_a_probe_finds_nothing_wrong_and_leaves_nothing(root: RemoteRoot) -> None:
    probe(root)
    assert Place(root).listing(".probe") == {}


def test_bytes_and_files_come_back(place: Place, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 40_000)  # more than one request
    place.put_file(str(source), NAMES[0])
    place.put_bytes(b"{}", NAMES[1])
    assert place.size(NAMES[0]) == source.stat().st_size
    assert place.read(NAMES[1], 10) == b"{}"
    out = io.BytesIO()
    place.fetch(NAMES[0], out)
    assert out.getvalue() == source.read_bytes()


def test_what_is_not_there_is_none_and_not_an_error(place: Place) -> None:
    assert place.size(NAMES[0]) is None
    assert place.read(NAMES[0], 10) is None
    assert place.listing("objects/t/1") == {}
    place.remove(NAMES[0])


def test_a_folder_is_no_file(place: Place) -> None:
    place.put_bytes(b"1", NAMES[0])
    assert place.size("objects/t") is None


def test_listings_are_of_one_folder_and_all_below_it(place: Place) -> None:
    for name in NAMES:
        place.put_bytes(name.encode(), name)
    assert place.listing("objects/t/1") == {NAMES[0]: len(NAMES[0])}
    assert place.listing("objects") == {name: len(name) for name in (NAMES[0], NAMES[2])}


def test_writing_again_is_seen_at_once_and_leaves_no_upload(place: Place) -> None:
    place.put_bytes(b"old", NAMES[1])
    place.put_bytes(b"newer", NAMES[1])
    assert place.read(NAMES[1], 10) == b"newer"
    assert place.listing(".uploads") == {}


def test_removed_files_are_gone_at_once(place: Place) -> None:
    place.put_bytes(b"1", NAMES[0])
    place.remove(NAMES[0])
    assert place.size(NAMES[0]) is None
    assert place.listing("objects") == {}
    place.remove_folder("objects/t/1")


def test_empty_files_exist(place: Place, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    place.put_file(str(tmp_path / "empty"), NAMES[0])
    assert place.size(NAMES[0]) == 0
    assert place.read(NAMES[0], 10) == b""


def test_a_small_file_that_is_large_is_not_read(place: Place) -> None:
    place.put_bytes(b"x" * 11, NAMES[1])
    with pytest.raises(CorruptWeights, match="11 bytes"):
        place.read(NAMES[1], 10)


def test_uploads_of_this_owners_process_before_are_forgotten(root: RemoteRoot) -> None:
    one, other = Place(root, owner="one"), Place(root, owner="other")
    for place in (one, other):
        place.put_bytes(b"half", f".uploads/{'one' if place is one else 'other'}-x")
    one.forget_uploads()
    left = one.listing(".uploads")
    if root.protocol in ("file", "sftp"):  # the others have no uploads
        assert list(left) == [".uploads/other-x"]
