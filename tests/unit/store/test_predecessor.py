"""Nobody is killed who is not proven to be the head before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.store.lock_file import FileId, Predecessor, file_id
from trial_runtime.process_start import start_time

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="proof is taken from /proc")


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "head.lock"
    path.touch()
    return path


@pytest.fixture
def holder(lock: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the lock file open."""
    with lock.open() as file:
        process = subprocess.Popen(["sleep", "600"], stdin=file)
    yield process
    process.kill()
    process.wait()


def _predecessor(process: subprocess.Popen[bytes], lock: Path) -> Predecessor:
    return Predecessor(process.pid, start_time(process.pid) or "", file_id(lock))


def test_the_very_head_is_ended_though_its_lock_was_replaced(
    holder: subprocess.Popen[bytes], lock: Path
) -> None:
    before = _predecessor(holder, lock)
    lock.rename(lock.with_name("gone"))
    lock.with_name("gone").unlink()
    assert before.end()
    assert holder.wait(120) == -9


@pytest.mark.parametrize("wrong", ["started", "unknown start", "lock"])
def test_whoever_else_has_its_number_is_left_alone(
    wrong: str, holder: subprocess.Popen[bytes], lock: Path
) -> None:
    """Mutation: ``end`` asks for no proof."""
    true = _predecessor(holder, lock)
    told = {
        "started": Predecessor(true.pid, "1", true.lock),
        "unknown start": Predecessor(true.pid, "", true.lock),
        "lock": Predecessor(true.pid, true.started, FileId(0, 1)),
    }[wrong]
    assert not told.end()
    assert holder.poll() is None


def test_a_process_that_is_gone(holder: subprocess.Popen[bytes], lock: Path) -> None:
    before = _predecessor(holder, lock)
    holder.kill()
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    assert not before.end()  # a zombie
    holder.wait()
    assert not before.end()
