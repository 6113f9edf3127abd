"""Somebody who may write to the weights root swaps folders for links while we work there.

Outside the root lies a decoy with the same names. Nothing of it is ever read as weights,
changed or deleted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from trial_runtime.agent.attempts.preparing import Unpreparable, make_room
from trial_runtime.errors import PathThroughLink, TrialRuntimeError
from trial_runtime.weights import load, save
from trial_runtime.weights.read.plain import digest_tree
from trial_runtime.weights.storage import confined
from trial_runtime.weights.usage import plan_removal, remove

#: Seconds that each of the races goes on.
RACE_S = 1.0

#: Swaps ``gen`` for a link to the decoy and back, as fast as it can.
SWAPPER = """
import itertools, os, sys
root, outside = sys.argv[1:]
gen, link = f"{root}/gen", f"{root}/.link"
print("ready", flush=True)
for number in itertools.count():
    aside = f"{root}/.aside-{number}"  # who works here may make a new one meanwhile
    os.makedirs(gen, exist_ok=True)
    os.symlink(outside, link)
    os.rename(gen, aside)
    try:
        os.rename(link, gen)
        os.unlink(gen)
        os.rename(aside, gen)
    except OSError:
        if os.path.lexists(link):
            os.unlink(link)
"""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """The decoy: looks like what is in the root, with other values."""
    folder = tmp_path / "outside"
    save({"w": np.full(64, 666.0)}, folder / "1", root=str(folder))
    (folder / "plain").mkdir()
    (folder / "plain" / "model.bin").write_bytes(b"decoy")
    (folder / "treasure").write_text("not ours")
    return folder


def portrait(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (
            path.read_bytes() if path.is_file() else b"",
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
    }


@contextmanager
def swapping(root: Path, outside: Path) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-c", SWAPPER, str(root), str(outside)], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.communicate()


class Race:
    """Goes on for :data:`RACE_S`, and until somebody has been in the way."""

    def __init__(self) -> None:
        self.refused = 0
        self.number = 0

    def __iter__(self) -> Iterator[int]:
        began = time.monotonic()
        while (past := time.monotonic() - began) < RACE_S or not self.refused:
            assert past < 240, "there was no race"
            yield self.number
            self.number += 1

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """What is refused, or not there at this moment, is what we want to see."""
        try:
            yield
        except (TrialRuntimeError, Unpreparable, OSError):
            self.refused += 1


def test_saves_and_loads_stay_inside(root: Path, outside: Path) -> None:
    before = portrait(outside)
    race = Race()
    with swapping(root, outside):
        for _ in race:
            with race.refusals():
                save({"w": np.full(64, 1.0)}, root / "gen" / "1", root=str(root))
                found = load(root / "gen" / "1", root=str(root))
                assert found["w"][0] == 1.0, "the decoy was read as weights"
    assert portrait(outside) == before


def test_removals_stay_inside(root: Path, outside: Path) -> None:
    before = portrait(outside)
    race = Race()
    with swapping(root, outside):
        for _ in race:
            with race.refusals():
                save({"w": np.full(64, 1.0)}, root / "gen" / "1", root=str(root))
                remove(str(root), plan_removal(str(root), drop=["gen/1"], keep=[]))
    assert portrait(outside) == before


def test_a_plan_made_before_the_swap_deletes_nothing_outside(root: Path, outside: Path) -> None:
    save({"w": np.ones(64)}, root / "gen" / "1", root=str(root))
    names = sorted(os.listdir(root / "gen" / "1"))
    plan = plan_removal(str(root), drop=["gen/1"], keep=[])
    for name in names:  # the very names that the plan has
        (outside / "1" / name).write_bytes(b"decoy")
    before = portrait(outside)
    (root / "gen").rename(root / "moved")
    (root / "gen").symlink_to(outside)
    remove(str(root), plan)
    assert portrait(outside) == before


def test_a_digest_never_covers_what_lies_outside(root: Path, outside: Path) -> None:
    (root / "gen" / "plain").mkdir(parents=True)
    (root / "gen" / "plain" / "model.bin").write_bytes(b"ours")
    path = root / "gen" / "plain"
    true = digest_tree(str(path)).digest
    decoy = digest_tree(str(outside / "plain")).digest
    assert true != decoy
    race = Race()
    with swapping(root, outside):
        for _ in race:
            with race.refusals():
                assert digest_tree(str(path), sync=False).digest == true


def test_room_is_not_made_outside(root: Path, outside: Path) -> None:
    before = portrait(outside)
    race = Race()
    with swapping(root, outside):
        for number in race:
            with race.refusals():
                make_room(str(root / "gen" / "deep" / str(number)), 2)
                make_room(str(root / "gen" / "1"), 2)
    assert portrait(outside) == before


def test_a_link_on_the_way_is_named(root: Path, outside: Path) -> None:
    (root / "gen").symlink_to(outside)
    for call in (
        lambda: confined.unlink(str(root / "gen" / "treasure")),
        lambda: confined.folder(str(root / "gen" / "new"), make=True).__enter__(),
    ):
        with pytest.raises(PathThroughLink, match="in the way, at 'gen'"):
            call()
    assert (outside / "treasure").exists()
    assert not (outside / "new").exists()


def test_folders_are_made_once_and_files_removed(root: Path) -> None:
    for _ in range(2):
        with confined.folder(str(root / "a" / "b"), make=True) as at:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    confined.unlink(str(root / "a" / "b" / "file"))
    assert os.listdir(root / "a" / "b") == []
    with pytest.raises(FileNotFoundError):
        confined.unlink(str(root / "a" / "c" / "file"))
    shutil.rmtree(root / "a")
