"""A reader sees what was there before, or all that is there now; never something between."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trial_runtime import failpoints
from trial_runtime.errors import DiskFull, WeightsNotFound
from trial_runtime.weights import load, save
from trial_runtime.weights.storage import confined, publishing

_CHILD = """
import sys
import numpy as np
from trial_runtime.weights import save

save({"w": np.full(1000, 2.0)}, sys.argv[1])
"""
_MOMENTS = [
    "data.written",
    "data.synced",
    "data.renamed",
    "manifest.written",
    "manifest.synced",
    "manifest.renamed",
]


def save_and_die(path: Path, moment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path)],
        env={**os.environ, failpoints.VARIABLE: f"weights.{moment}=kill"},
        cwd=Path.cwd(),
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("moment", _MOMENTS)
def test_killed_while_publishing_for_the_first_time(tmp_path: Path, moment: str) -> None:
    save_and_die(tmp_path / "1", moment)
    if moment == "manifest.renamed":
        assert load(tmp_path / "1")["w"][0] == 2.0
    else:
        with pytest.raises(WeightsNotFound):
            load(tmp_path / "1")


@pytest.mark.parametrize("moment", _MOMENTS)
def test_killed_while_publishing_over_older_weights(tmp_path: Path, moment: str) -> None:
    save({"w": np.full(1000, 1.0)}, tmp_path / "1")
    save_and_die(tmp_path / "1", moment)
    expected = 2.0 if moment == "manifest.renamed" else 1.0
    assert load(tmp_path / "1")["w"].tolist() == [expected] * 1000


def test_each_step_is_durable_before_the_next(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.rename

    def kind(path: str) -> str:
        name = os.path.basename(path)
        return "folder" if os.path.isdir(path) else "manifest" if "manifest" in name else "data"

    def note_sync(fd: int) -> None:
        steps.append("sync " + kind(os.readlink(f"/proc/self/fd/{fd}")))
        fsync(fd)

    def note_rename(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        assert src_dir_fd == dst_dir_fd
        rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        steps.append("rename " + kind(target))

    (root / "1").mkdir()
    monkeypatch.setattr(publishing.os, "fsync", note_sync)
    monkeypatch.setattr(publishing.os, "rename", note_rename)
    save({"w": np.ones(3)}, root / "1")
    assert steps == [
        "sync data",
        "rename data",
        "sync folder",
        "sync manifest",
        "rename manifest",
        "sync folder",
    ]


def test_new_folders_are_made_durable_in_those_above(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = confined.sync

    def note(fd: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), root))
        real(fd)

    monkeypatch.setattr(confined, "sync", note)
    save({"w": np.ones(3)}, root / "gen" / "1")
    assert synced == [".", "gen", "gen/1", "gen/1"]


@pytest.mark.parametrize("call", ["pwrite", "fsync", "rename"])
@pytest.mark.parametrize("file", ["weights-", "manifest.json"])
def test_a_full_disk_leaves_what_was_there(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: str, file: str
) -> None:
    save({"w": np.ones(3)}, root / "1")
    before = {name: (root / "1" / name).read_bytes() for name in os.listdir(root / "1")}
    real = getattr(os, call)

    def full(target: object, *rest: object, **at: int) -> object:
        name = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else str(target)
        if file in name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(target, *rest, **at)

    monkeypatch.setattr(publishing.os, call, full)
    with pytest.raises(DiskFull) as caught:
        save({"w": np.full(3, 2.0)}, root / "1")
    monkeypatch.undo()
    assert caught.value.needed_bytes == 24
    assert caught.value.where == str(root / "1")
    assert {name: (root / "1" / name).read_bytes() for name in os.listdir(root / "1")} == before


def test_a_disk_that_is_full_for_real(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        save({"w": np.ones(10_000)}, small / "1")
        with pytest.raises(DiskFull):
            save({"w": np.ones(1_000_000)}, small / "2")
        assert os.listdir(small / "2") == []
        assert load(small / "1")["w"].sum() == 10_000
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)


def test_an_error_while_hashing_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trial_runtime.weights.format import hashing

    def fail(*_: object) -> str:
        raise MemoryError("no hasher")

    monkeypatch.setattr(hashing, "digest", fail)
    with pytest.raises(MemoryError):
        save({"w": np.ones(3)}, root / "1")
    assert os.listdir(root / "1") == []
