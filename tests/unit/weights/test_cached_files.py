"""Loading through the cache of a host: whole files once, parts directly, damage never."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trial_runtime import weights
from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.cache import cache as cache_module
from trial_runtime.weights.cache import files, place
from trial_runtime.weights.cache.place import cache_for, default_folder
from trial_runtime.weights.storage.mounted import Mount

SIZE = 50_000  # elements: 400 kB, well above what a copy is worth


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache_module, "SPARED_BYTES", 0)
    monkeypatch.setattr(files, "_warned", False)
    folder = tmp_path / "cache"
    monkeypatch.setenv("BEQUEATH_WEIGHTS_CACHE", f"always:10000000:{folder}")
    return folder


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The originals that were copied, in order."""
    copied: list[str] = []
    real = files.read_into

    def counted(to: object, path: str) -> None:
        copied.append(path)
        real(to, path)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "read_into", counted)
    return copied


def copies(folder: Path) -> list[Path]:
    return list((folder / "entries").iterdir()) if folder.exists() else []


def test_a_parent_is_copied_once_and_loaded_from_the_copy(
    root: Path, folder: Path, fetched: list[str]
) -> None:
    weights.save({"a": np.arange(SIZE), "step": 3}, "1")
    for _ in range(3):
        state = weights.load("1")
        assert (state["a"] == np.arange(SIZE)).all()
        assert state["step"] == 3
        state["a"][0] = 7  # touches no file
    assert len(fetched) == 1
    (copy,) = copies(folder)
    assert f"{copy.name}" in weights.read_manifest("1").digests.values()
    # The copy is what is read: without the bytes of the original it still loads.
    data = next((root / "1").glob("*.safetensors"))
    os.truncate(data, 0)
    os.truncate(data, copy.stat().st_size)
    assert (weights.load("1")["a"] == np.arange(SIZE)).all()


def test_into_a_target_with_a_digest(root: Path, folder: Path, fetched: list[str]) -> None:
    told = weights.save({"a": np.arange(SIZE)}, "1")
    into = {"a": np.zeros(SIZE, dtype=np.int64)}
    report = weights.load("1", into, digest=told.digest)
    assert report.loaded == ("a",)
    assert (into["a"] == np.arange(SIZE)).all()
    assert len(fetched) == 1


def test_a_part_of_a_file_is_read_directly(root: Path, folder: Path, fetched: list[str]) -> None:
    weights.save({str(n): np.full(SIZE, n) for n in range(10)}, "1")
    assert (weights.load("1", names="3")["3"] == 3).all()
    assert (weights.load("1", names="[0-3]")["3"] == 3).all()
    assert fetched == []
    assert (weights.load("1", names="[0-5]")["3"] == 3).all()  # more than half of it
    assert len(fetched) == 1


def test_of_several_files_those_that_are_wanted_whole(
    root: Path, folder: Path, fetched: list[str]
) -> None:
    weights.save({str(n): np.full(SIZE, n) for n in range(10)}, "1")
    weights.save({"3": np.full(SIZE, 3), "new": np.ones(SIZE)}, "2", parent="1")
    state = weights.load("2")
    assert (state["3"] == 3).all()
    assert (state["new"] == 1).all()
    (path,) = fetched
    assert Path(path).parent == root / "2"


def test_small_files_are_not_worth_it(root: Path, folder: Path, fetched: list[str]) -> None:
    weights.save({"a": np.arange(10)}, "1")
    assert weights.load("1")["a"].tolist() == list(range(10))
    assert fetched == []
    assert not folder.exists()


@pytest.mark.parametrize("cut", [True, False])
def test_a_damaged_copy_is_never_taken_for_the_parent(
    root: Path, folder: Path, fetched: list[str], cut: bool
) -> None:
    weights.save({"a": np.arange(SIZE), "b": np.ones(SIZE)}, "1")
    weights.load("1")
    (copy,) = copies(folder)
    if cut:
        os.truncate(copy, 1000)
    else:
        with open(copy, "r+b") as file:
            file.seek(-1000, os.SEEK_END)
            file.write(b"forged")
    state = weights.load("1")
    assert (state["a"] == np.arange(SIZE)).all()
    assert (state["b"] == 1).all()
    weights.load("1")
    assert len(fetched) == 2  # and it was thrown away


def test_a_damaged_original_is_named_as_ever(root: Path, folder: Path) -> None:
    weights.save({"a": np.arange(SIZE)}, "1", writer="7.1")
    data = next((root / "1").glob("*.safetensors"))
    with open(data, "r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"forged")
    with pytest.raises(CorruptWeights, match=r"tensor .a.*written by 7\.1") as caught:
        weights.load("1")
    assert caught.value.where == str(data)
    assert copies(folder) == []


def test_who_does_not_compare_reads_the_original(
    root: Path, folder: Path, fetched: list[str]
) -> None:
    weights.save({"a": np.arange(SIZE)}, "1")
    weights.load("1")
    (copy,) = copies(folder)
    copy.write_bytes(bytes(copy.stat().st_size))
    assert (weights.load("1", verify=False)["a"] == np.arange(SIZE)).all()


def test_without_room_the_original_is_read_and_that_is_said_once(
    root: Path,
    folder: Path,
    fetched: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BEQUEATH_WEIGHTS_CACHE", f"always:100000:{folder}")
    weights.save({"a": np.arange(SIZE)}, "1")
    for _ in range(3):
        assert (weights.load("1")["a"] == np.arange(SIZE)).all()
    said = capsys.readouterr().err
    assert said.count("weights are read from the share itself") == 1
    assert "weightsCache.size" in said
    assert fetched == []


@pytest.mark.parametrize(
    "told", ["", "always:0:/x", "never:5:/x", "auto:x:/y", "always:-5:/x", "auto", "auto:1000:/x"]
)
def test_where_there_is_no_cache(root: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    monkeypatch.setenv("BEQUEATH_WEIGHTS_CACHE", told)
    assert cache_for(str(root)) is None


def test_by_itself_it_is_for_shared_file_systems(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEQUEATH_WEIGHTS_CACHE", "auto:1000:/a:b")
    monkeypatch.setattr(place, "mount_of", lambda _: Mount("/", "nfs4", {}))
    found = cache_for(str(root))
    assert found is not None
    assert (found.folder, found.max_bytes) == ("/a:b", 1000)


def test_where_a_host_keeps_copies_if_nobody_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    monkeypatch.setattr(place, "network_type", lambda _: None)
    assert default_folder() == "/somewhere/cache/bequeath/weights"
    monkeypatch.setattr(place, "network_type", lambda _: "nfs4")  # a shared home
    assert default_folder() == f"/var/tmp/bequeath-weights-{os.geteuid()}"


_CHILD = """
import os, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
from trial_runtime import weights
state = weights.load("1", root=sys.argv[1])
assert state["a"][-1] == 49_999
print(sum(str(name).endswith(".safetensors") for name in opened))
"""


def test_eight_children_of_one_parent_read_the_share_once(root: Path, folder: Path) -> None:
    """Mutation: the entry is named by the process, or the lock is not taken."""
    weights.save({"a": np.arange(SIZE)}, "1")
    argv = [sys.executable, "-c", _CHILD, str(root)]
    children = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    reads = [int(child.communicate(timeout=120)[0]) for child in children]
    assert [child.returncode for child in children] == [0] * 8
    assert sum(reads) == 1


def test_without_a_cache_each_child_reads_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what is counted above is there to be counted."""
    monkeypatch.delenv("BEQUEATH_WEIGHTS_CACHE", raising=False)
    weights.save({"a": np.arange(SIZE)}, "1")
    argv = [sys.executable, "-c", _CHILD, str(root)]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "1\n"
