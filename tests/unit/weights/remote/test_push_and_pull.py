"""What an attempt published is what a child gets, wherever it was written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.unit.weights.remote.conftest import Lab, assert_same, state
from trial_runtime.errors import CorruptWeights, PathError, WeightsNotFound
from trial_runtime.weights.cache.cache import WeightsCache
from trial_runtime.weights.remote.pulling import NotPublished
from trial_runtime.weights.remote.pushing import push
from trial_runtime.weights.saving.saving import save


def test_what_was_saved_is_what_is_loaded_on_another_host(lab: Lab) -> None:
    pushed = lab.trained("1.1", state())
    assert_same(lab.loaded("2.1", "t/1", pushed.published.digest), state())


def test_a_child_uploads_what_it_changed_and_keeps_its_ancestors_files(lab: Lab) -> None:
    first = lab.trained("1.1", state(size=50_000))
    second = lab.trained("2.1", state(1, size=50_000), ("t/1", first.published.digest))
    third = lab.trained("3.1", state(1, 2, size=50_000), ("t/2", second.published.digest))
    assert second.uploaded_bytes < first.uploaded_bytes / 2
    # Of three generations' files: a grandchild never saw the grandparent's folder.
    assert {file.owner for file in third.record.files} == {"t/1", "t/2", "t/3"}
    assert_same(lab.loaded("4.1", "t/3", third.published.digest), state(1, 2, size=50_000))


def test_pushing_again_uploads_nothing_that_is_there(lab: Lab) -> None:
    first = lab.trained("1.1", state())
    again = push(lab.place, lab.view("1.1"), "t/1", writer="1.1")
    assert again.uploaded_bytes == 0
    assert again.published == first.published


def test_plain_files_and_folders(lab: Lab) -> None:
    view = Path(lab.view("1.1"))
    (view / "t" / "1" / "sub").mkdir(parents=True)
    (view / "t" / "1" / "a.pt").write_bytes(b"a" * 1000)
    (view / "t" / "1" / "sub" / "empty").touch()
    (view / "t" / "2").write_bytes(b"one file")
    for path in ("t/1", "t/2"):
        pushed = push(lab.place, str(view), path, writer="1.1")
        assert pushed.published.kind == "files"
        lab.pulled("3.1", path, pushed.published.digest, "files")
    there = Path(lab.view("3.1"))
    assert (there / "t" / "1" / "a.pt").read_bytes() == b"a" * 1000
    assert (there / "t" / "1" / "sub" / "empty").read_bytes() == b""
    assert (there / "t" / "2").read_bytes() == b"one file"


def test_a_child_that_changes_plain_files_changes_nobody_elses(lab: Lab) -> None:
    (Path(lab.view("1.1")) / "t").mkdir()
    (Path(lab.view("1.1")) / "t" / "1").write_bytes(b"as it was")
    pushed = push(lab.place, lab.view("1.1"), "t/1", writer="1.1")
    files = []
    for attempt in ("2.1", "3.1"):
        lab.pulled(attempt, "t/1", pushed.published.digest, "files")
        files.append(Path(lab.view(attempt)) / "t" / "1")
    files[0].write_bytes(b"spoilt")
    assert files[1].read_bytes() == b"as it was"
    lab.pulled("4.1", "t/1", pushed.published.digest, "files")
    assert (Path(lab.view("4.1")) / "t" / "1").read_bytes() == b"as it was"


def test_one_host_fetches_a_file_once_for_all_children(lab: Lab) -> None:
    digest = lab.trained("1.1", state()).published.digest
    lab.pulled("2.1", "t/1", digest)
    lab.fs.calls.clear()
    lab.pulled("3.1", "t/1", digest)
    read = [path for name, path in lab.fs.calls if name == "open"]
    assert len(read) == 1  # the record
    assert "/published/" in read[0]


def test_a_host_without_room_for_copies_reads_the_originals(lab: Lab, tmp_path: Path) -> None:
    lab.cache = WeightsCache(str(tmp_path / "off"), 0)
    digest = lab.trained("1.1", state()).published.digest
    assert_same(lab.loaded("2.1", "t/1", digest), state())


def test_attempts_do_not_overwrite_each_other(lab: Lab) -> None:
    given_up = lab.trained("1.1", state(0))
    second = lab.trained("1.2", state(1))
    again = push(lab.place, lab.view("1.1"), "t/1", writer="1.1")  # it lives on
    assert again.published.digest == given_up.published.digest != second.published.digest
    assert_same(lab.loaded("2.1", "t/1", second.published.digest), state(1))


def test_many_that_write_the_same_at_once(lab: Lab) -> None:
    save(state(), "t/1", root=lab.view("1.1"), writer="1.1")
    with ThreadPoolExecutor(6) as pool:
        view = lab.view("1.1")
        pushes = [pool.submit(push, lab.place, view, "t/1", writer="1.1") for _ in range(6)]
        digests = {done.result().published.digest for done in pushes}
    (digest,) = digests
    assert len(lab.place.listing("objects")) == 2
    assert_same(lab.loaded("2.1", "t/1", digest), state())


def test_what_the_trial_did_not_announce_is_not_pushed(lab: Lab) -> None:
    lab.trained("1.1", state())
    before = lab.place.listing("published")
    with pytest.raises(CorruptWeights, match="not what the trial announced"):
        push(lab.place, lab.view("1.1"), "t/1", writer="1.1", announced="f" * 64)
    assert lab.place.listing("published") == before


def test_nothing_there_is_nothing_to_push(lab: Lab) -> None:
    with pytest.raises(WeightsNotFound):
        push(lab.place, lab.view("1.1"), "t/1", writer="1.1")
    assert lab.place.listing("published") == {}


def test_experiments_do_not_see_each_other(lab: Lab) -> None:
    digest = lab.trained("1.1", state()).published.digest
    other = lab.place.root.__class__(lab.place.root.url, {}, "lab-2")
    lab.place = lab.place.__class__(other)
    with pytest.raises(NotPublished):
        lab.pulled("2.1", "t/1", digest)


@pytest.mark.parametrize("path", ["a b/ü?#x", "x" * 220, "a=20b", "~home", "a%2Fb"])
def test_any_save_path(lab: Lab, path: str) -> None:
    pushed = lab.trained("1.1", state(), path=path)
    assert_same(lab.loaded("2.1", path, pushed.published.digest), state())


def test_what_a_link_leads_to_is_not_pushed(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    lab.trained("1.1", state())
    data = next(Path(lab.view("1.1")).glob("t/1/*.safetensors"))
    data.unlink()
    data.symlink_to(tmp_path / "secret")
    with pytest.raises(PathError):
        lab.place.put_file(str(data), "objects/x")
    with pytest.raises(CorruptWeights):
        push(lab.place, lab.view("1.1"), "t/1", writer="1.1")
    assert lab.place.size("objects/x") is None


def test_parents_files_are_not_for_writing(lab: Lab) -> None:
    lab.pulled("2.1", "t/1", lab.trained("1.1", state()).published.digest)
    for path in Path(lab.view("2.1")).glob("t/1/*"):
        assert path.stat().st_mode & 0o222 == 0
