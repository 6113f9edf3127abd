"""Only the process that was found is struck, and only those of the experiment are found."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.chaos.schedule import Kind
from dispatcher.chaos.victims import Victim, find
from trial_runtime.process_start import start_time


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that goes on until it is killed."""
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(params=["of today", "without pidfd_open"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python may have a function that the kernel has not."""

    def refused(_pid: int, _flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    if request.param != "of today":
        monkeypatch.setattr(os, "pidfd_open", refused)


@pytest.mark.usefixtures("kernel")
def test_the_very_process_is_struck(sleeper: subprocess.Popen[bytes]) -> None:
    victim = Victim(Kind.TRIAL, sleeper.pid, start_time(sleeper.pid) or "")
    assert victim.strike(signal.SIGKILL)
    assert sleeper.wait(120) == -signal.SIGKILL
    assert not victim.strike(signal.SIGKILL)


@pytest.mark.usefixtures("kernel")
def test_another_process_of_the_same_number_is_left_alone(
    sleeper: subprocess.Popen[bytes],
) -> None:
    assert not Victim(Kind.TRIAL, sleeper.pid, "of another").strike(signal.SIGKILL)
    assert sleeper.poll() is None


def test_only_this_experiments_processes_are_found(tmp_path: Path) -> None:
    """This test's own process stands for a head, with two children that look like tuner hosts."""
    for folder in (tmp_path / "this", tmp_path / "this-too"):
        folder.mkdir()
    program = "import time; time.sleep(600)"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, "dispatcher.tuner_host", f"{folder}/tuner_host.json"]
        )
        for folder in (tmp_path / "this", tmp_path / "this-too")
    ]
    try:
        found = find(tmp_path / "this", os.getpid(), Kind.TUNER_HOST)
        assert [victim.pid for victim in found] == [started[0].pid]
        assert [v.pid for v in find(tmp_path, os.getpid(), Kind.HEAD)] == [os.getpid()]
        assert find(tmp_path / "this", os.getpid(), Kind.AGENT) == []
    finally:
        for process in started:
            process.kill()
            process.wait()
