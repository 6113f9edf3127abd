"""Torn, stale, lost and forged: what a child is told is the truth, or a clear error."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.weights.remote.conftest import Faulty, Lab, assert_same, broken, state
from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.remote import record as records
from trial_runtime.weights.remote.faults import RemoteUnavailable
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.pulling import NotPublished, pull
from trial_runtime.weights.remote.pushing import push
from trial_runtime.weights.remote.retrying import Persistence
from trial_runtime.weights.storage.patience import Patience


def test_a_put_that_fails_midway_publishes_nothing_and_is_made_up_for(lab: Lab) -> None:
    lab.fs.plan["put_file"] = [None, broken]
    with pytest.raises(RemoteUnavailable, match="Connection reset"):
        lab.trained("1.1", state())
    assert lab.place.listing("published") == {}
    pushed = push(lab.place, lab.view("1.1"), "t/1", writer="1.1")
    assert_same(lab.loaded("2.1", "t/1", pushed.published.digest), state())


def test_an_object_that_arrived_cut_is_not_taken_for_whole(lab: Lab) -> None:
    fs = lab.fs

    def cut(source: str, path: str) -> None:
        fs.inner.pipe_file(path, Path(source).read_bytes()[:-1])

    fs.plan["put_file"] = [cut]
    with pytest.raises(RemoteUnavailable, match="took"):
        lab.trained("1.1", state())
    assert lab.place.listing("published") == {}
    pushed = push(lab.place, lab.view("1.1"), "t/1", writer="1.1")
    assert pushed.uploaded_bytes > 0
    assert_same(lab.loaded("2.1", "t/1", pushed.published.digest), state())


def test_what_fails_is_tried_again_with_growing_pauses(lab: Lab) -> None:
    pauses: list[float] = []
    patient = Persistence(10.0, clock=lambda: sum(pauses), sleep=pauses.append)
    place = Place(lab.place.root, persistence=patient, opened=lab.opened)
    lab.fs.plan["pipe_file"] = [broken] * 4
    place.put_bytes(b"x", "name")
    assert place.read("name", 10) == b"x"
    assert pauses == [0.2, 0.4, 0.8, 1.6]
    lab.fs.plan["pipe_file"] = [broken] * 100
    with pytest.raises(RemoteUnavailable):
        place.put_bytes(b"x", "name")
    assert sum(pauses) == pytest.approx(3.0 + 10.0)


def test_reading_goes_on_where_the_connection_broke(lab: Lab) -> None:
    data = bytes(range(256)) * 20_000
    lab.place.put_bytes(data, "name")
    fs = lab.fs

    class Breaks(io.BytesIO):
        def read(self, *args: Any) -> bytes:
            if self.tell() >= 1 << 21:
                broken()
            return super().read(*args)

    fs.plan["open"] = [lambda *_args, **_options: Breaks(data)]
    pauses: list[float] = []
    patient = Persistence(10.0, clock=lambda: 0.0, sleep=pauses.append)
    place = Place(lab.place.root, persistence=patient, opened=lab.opened)
    place.size("name")
    out = io.BytesIO()
    place.fetch("name", out)
    assert out.getvalue() == data
    assert len(pauses) == 1


def test_a_record_that_is_not_there_is_waited_for_and_then_named(lab: Lab) -> None:
    lab.trained("1.1", state())
    (name,) = lab.place.listing("published")
    digest = name.rpartition("/")[2].removesuffix(".json")
    raw = lab.place.read(name, 1 << 20)
    assert raw is not None
    lab.place.remove(name)
    with pytest.raises(NotPublished, match=f"{digest} are not there"):
        lab.pulled("2.1", "t/1", digest)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            lab.place.put_bytes(raw, name)

    patience = Patience(30.0, clock=lambda: sum(slept), sleep=sleep)
    view = lab.view("3.1")
    pull(lab.place, lab.cache, view, "t/1", digest=digest, kind="bequeath", patience=patience)
    assert len(slept) == 3


@pytest.mark.parametrize("spoil", ["gone", "cut", "changed"])
def test_an_object_that_is_not_what_was_published(lab: Lab, spoil: str) -> None:
    digest = lab.trained("1.1", state()).published.digest
    for name, size in lab.place.listing("objects").items():
        if spoil == "gone":
            lab.place.remove(name)
        else:
            lab.place.put_bytes(b"x" * (size - (spoil == "cut")), name)
    with pytest.raises(CorruptWeights):
        lab.pulled("2.1", "t/1", digest)
    assert not (Path(lab.view("2.1")) / "t" / "1" / "manifest.json").exists()


def test_no_connection_is_no_missing_record(lab: Lab) -> None:
    digest = lab.trained("1.1", state()).published.digest
    lab.fs.plan["info"] = [broken]
    with pytest.raises(RemoteUnavailable):
        lab.pulled("2.1", "t/1", digest)
    lab.pulled("2.1", "t/1", digest)


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(lab: Lab) -> None:
    lab.trained("1.1", state())
    if lab.place.root.protocol == "memory":  # its listings come in one piece
        lab.fs.plan["find"] = [broken]
    else:
        lab.fs.inner.ls = broken  # where fsspec's own find would look no further, and say nothing
    with pytest.raises(RemoteUnavailable):
        lab.place.listing("objects")


def forged(lab: Lab, of: str, /, **changes: Any) -> None:
    name = records.record_name("t/1", of)
    raw = lab.place.read(name, 1 << 20)
    assert raw is not None
    told = msgspec.json.decode(raw)
    lab.place.put_bytes(msgspec.json.encode(told | changes), name)


@pytest.mark.parametrize(
    "changes,said",
    [
        ({"version": 2}, "version 2 is not known"),
        ({"digest": "a" * 64}, "is the record of"),
        ({"save_path": "t/2"}, "is the record of"),
        ({"files": []}, "its manifest is not the one"),
        ({"files": "x"}, "not the record of weights"),
        (
            {"files": [{"path": "../x", "nbytes": 1, "blake3": "a" * 64, "owner": "t/1"}]},
            "not a path below",
        ),
        (
            {"files": [{"path": "/etc/x", "nbytes": 1, "blake3": "a" * 64, "owner": "t/1"}]},
            "not a path below",
        ),
        (
            {"files": [{"path": "t/1/x", "nbytes": 1, "blake3": "../x", "owner": "t/1"}]},
            "contradicts itself",
        ),
    ],
)
def test_forged_records(lab: Lab, changes: dict[str, Any], said: str) -> None:
    digest = lab.trained("1.1", state()).published.digest
    forged(lab, digest, **changes)
    with pytest.raises(CorruptWeights, match=said):
        lab.pulled("2.1", "t/1", digest)


def test_a_record_that_leads_to_another_trials_objects(lab: Lab) -> None:
    other = lab.trained("5.1", state(2))
    pushed = lab.trained("1.1", state())
    digest = pushed.published.digest
    theirs, mine = other.record.files[0], pushed.record.files
    files = [
        {"path": mine[0].path, "nbytes": theirs.nbytes, "blake3": theirs.blake3, "owner": "t/5"},
        msgspec.to_builtins(mine[1]),
    ]
    forged(lab, digest, files=files)
    with pytest.raises(CorruptWeights, match="as the manifest does"):
        lab.pulled("2.1", "t/1", digest)


def test_plain_files_of_another_digest_are_refused(lab: Lab) -> None:
    (Path(lab.view("1.1")) / "t").mkdir()
    (Path(lab.view("1.1")) / "t" / "1").write_bytes(b"mine")
    digest = push(lab.place, lab.view("1.1"), "t/1", writer="1.1").published.digest
    (Path(lab.view("9.1")) / "t").mkdir()
    (Path(lab.view("9.1")) / "t" / "1").write_bytes(b"forged")
    theirs = push(lab.place, lab.view("9.1"), "t/1", writer="9.1").record
    forged(lab, digest, files=[msgspec.to_builtins(file) for file in theirs.files])
    with pytest.raises(CorruptWeights, match="do not have the digest"):
        lab.pulled("2.1", "t/1", digest, "files")


def test_what_the_wrapper_wraps_is_asked(lab: Lab) -> None:
    """The tests above would pass with a wrapper that is never asked."""
    assert isinstance(lab.fs, Faulty)
    lab.place.put_bytes(b"x", "name")
    assert ("pipe_file" in {name for name, _ in lab.fs.calls}) is True
