"""What crashes leave goes by its name and its age, and nothing else does."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import numpy as np
import pytest

from trial_runtime.weights import load, save
from trial_runtime.weights.storage.leftovers import (
    FILE_AGE_S,
    SET_ASIDE_AGE_S,
    Swept,
    is_silly,
    sweep_leftovers,
)
from trial_runtime.weights.usage import plan_removal, remove

SILLY = ".nfs000000000012d68700000001"
UNNAMED = ".tmp-0123456789abcdef-weights-0123456789abcdef.safetensors"
NOW = 2_000_000_000.0


def aged(path: Path, age_s: float) -> None:
    os.utime(path, (NOW - age_s, NOW - age_s))


@pytest.fixture
def published(root: Path) -> Path:
    save({"w": np.ones(3)}, root / "1")
    for path in (root / "1").iterdir():
        aged(path, 10 * SET_ASIDE_AGE_S)
    return root / "1"


def test_names() -> None:
    assert is_silly(SILLY)
    assert not is_silly(".nfs")
    assert not is_silly(".nfs-notes.txt")


@pytest.mark.parametrize("name", [SILLY, UNNAMED, ".tmp-0123456789abcdef-manifest.json"])
def test_old_leftovers_go_and_weights_stay(root: Path, published: Path, name: str) -> None:
    before = sorted(os.listdir(published))
    (published / name).write_text("left")
    aged(published / name, FILE_AGE_S - 1)
    assert sweep_leftovers(str(root), "1", NOW) == Swept(0, True), "somebody may still write it"
    aged(published / name, FILE_AGE_S + 1)
    assert sweep_leftovers(str(root), "1", NOW) == Swept(1, False)
    assert sorted(os.listdir(published)) == before
    assert load(published)["w"].sum() == 3


@pytest.mark.parametrize("name", [".tmp-mine", ".hidden", "notes.nfs", "weights.pt", ".nfsnotes"])
def test_files_of_others_stay(root: Path, published: Path, name: str) -> None:
    (published / name).write_text("mine")
    aged(published / name, 100 * SET_ASIDE_AGE_S)
    assert sweep_leftovers(str(root), "1", NOW) == Swept(0, False)
    assert (published / name).read_text() == "mine"


def test_what_was_set_aside_goes_when_it_is_old(root: Path, published: Path) -> None:
    for name in ("1.superseded.1", "1.superseded.2-3", "1.superseded.x", "11.superseded.1"):
        (root / name).mkdir()
        (root / name / "file").write_text("earlier")
        aged(root / name / "file", SET_ASIDE_AGE_S + 1)
        aged(root / name, SET_ASIDE_AGE_S + 1)
    aged(root / "1.superseded.1" / "file", SET_ASIDE_AGE_S - 1)  # somebody still writes there
    assert sweep_leftovers(str(root), "1", NOW) == Swept(1, True)
    assert sorted(os.listdir(root)) == ["1", "1.superseded.1", "1.superseded.x", "11.superseded.1"]


def test_a_file_that_is_open_on_this_host_is_left_for_later(
    root: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (published / SILLY).write_text("left")
    aged(published / SILLY, 2 * FILE_AGE_S)
    real = os.unlink

    def unlink(path: str, *, dir_fd: int | None = None) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(os, "unlink", unlink)
    assert sweep_leftovers(str(root), "1", NOW) == Swept(0, True)
    monkeypatch.setattr(os, "unlink", real)
    assert sweep_leftovers(str(root), "1", NOW) == Swept(1, False)


def test_nothing_is_removed_through_a_link(root: Path, tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / SILLY).write_text("not ours")
    aged(others / SILLY, 2 * FILE_AGE_S)
    (root / "1.superseded.1").symlink_to(others)
    aged(others, 2 * SET_ASIDE_AGE_S)
    os.utime(root / "1.superseded.1", (0, 0), follow_symlinks=False)
    sweep_leftovers(str(root), "1", NOW)
    assert (others / SILLY).exists()


def test_a_folder_with_a_silly_file_is_no_error_and_goes_later(root: Path) -> None:
    """A removed file that a reader on this host has open stays under such a name."""
    save({"w": np.ones(3)}, root / "1")
    (root / "1" / SILLY).write_text("open")
    remove(str(root), plan_removal(str(root), drop=["1"], keep=[]))
    assert os.listdir(root / "1") == [SILLY]
    (root / "1" / SILLY).unlink()  # the last close
    remove(str(root), plan_removal(str(root), drop=["1"], keep=[]))
    assert not (root / "1").exists()


def test_nothing_there(root: Path) -> None:
    assert sweep_leftovers(str(root), "gone/1", time.time()) == Swept(0, False)
