"""On a shared file system tensors are read, and faults of it are errors rather than signals."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trial_runtime.errors import CorruptWeights, StorageStale
from trial_runtime.weights import load, save, verify
from trial_runtime.weights.read import mapped, read_in
from trial_runtime.weights.storage import faults
from trial_runtime.weights.storage.mounted import Mount


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """All folders are taken for a share, and pauses take no time."""
    monkeypatch.setattr(mapped, "mount_of", lambda path: Mount("/", "nfs4", {}))
    monkeypatch.setattr(faults, "sleep", lambda pause_s: None)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Offset and size of each read."""
    found: list[tuple[int, int]] = []
    real = os.preadv

    def preadv(fd: int, buffers: Any, offset: int) -> int:
        found.append((offset, sum(len(each) for each in buffers)))
        return real(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    return found


def state() -> dict[str, Any]:
    generator = np.random.default_rng(1)
    return {f"t{n}": generator.random(1 << 15) for n in range(40)} | {"few": np.arange(3)}


def test_all_of_it_comes_back(root: Path, reads: list[tuple[int, int]]) -> None:
    before = state()
    done = save(before, root / "1")
    after = load(root / "1", digest=done.digest)
    assert reads, "nothing was mapped"
    for name, value in before.items():
        assert (after[name] == value).all()
        after[name] += 1  # changes memory, and no file
    assert verify(root / "1", done.digest).tensors == 41


def test_only_what_is_asked_for_is_read(root: Path, reads: list[tuple[int, int]]) -> None:
    save(state(), root / "1")
    found = load(root / "1", names=["t7", "t8", "t30"])
    assert (found["t30"] == state()["t30"]).all()
    assert sum(size for _, size in reads) == 3 * (8 << 15)
    assert len(reads) == 2, "neighbours come together"


def test_into_arrays_and_from_an_ancestors_file(root: Path) -> None:
    parent = save(state(), root / "1")
    changed = state() | {"few": np.arange(4)}
    child = save(changed, root / "2", parent=root / "1", parent_digest=parent.digest)
    assert child.tensors_inherited == 40
    into = {name: np.zeros_like(value) for name, value in changed.items()}
    load(root / "2", into, digest=child.digest, strict=True)
    assert all((into[name] == value).all() for name, value in changed.items())


def test_a_handle_that_goes_stale_within_a_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole file is read again through a new one."""
    before = state()
    save(before, root / "1")
    real, left = os.preadv, [3]

    def preadv(fd: int, buffers: Any, offset: int) -> int:
        if left[0]:
            left[0] -= 1
            raise OSError(errno.ESTALE, "Stale file handle")
        return real(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    assert all((value == before[name]).all() for name, value in load(root / "1").items())
    assert left == [0]


def test_a_handle_that_stays_stale(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(state(), root / "1")
    now = iter(range(0, 10_000, 5))
    monkeypatch.setattr(faults, "clock", lambda: float(next(now)))

    def preadv(fd: int, buffers: Any, offset: int) -> int:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(os, "preadv", preadv)
    with pytest.raises(StorageStale, match="export"):
        load(root / "1")


def test_a_file_that_is_cut_while_it_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a mapping this is SIGBUS."""
    save(state(), root / "1")
    (file,) = (root / "1").glob("weights-*")
    real = read_in.check_data_file

    def check(*what: Any) -> None:
        real(*what)
        os.truncate(file, 100_000)

    monkeypatch.setattr(read_in, "check_data_file", check)
    with pytest.raises(CorruptWeights, match="shorter"):
        load(root / "1")


def test_bytes_that_changed_are_found(root: Path) -> None:
    save(state(), root / "1")
    (file,) = (root / "1").glob("weights-*")
    with file.open("r+b") as handle:
        handle.seek(-5, os.SEEK_END)
        handle.write(b"x")
    with pytest.raises(CorruptWeights, match="digest differs"):
        load(root / "1")
