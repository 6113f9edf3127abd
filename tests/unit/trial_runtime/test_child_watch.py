"""How an agent notices that a process of a trial has ended."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.processes import wait_until
from trial_runtime.agent.attempt import Exit
from trial_runtime.agent.base.loop import Watch
from trial_runtime.agent.processes.children import ChildWatch


@pytest.fixture
def watch() -> Iterator[Watch]:
    before = signal.getsignal(signal.SIGCHLD)
    watch = Watch()
    yield watch
    watch.close()
    signal.signal(signal.SIGCHLD, before)


def _refused(_pid: int, _flags: int = 0) -> int:
    raise OSError(errno.ENOSYS, "Function not implemented")


@pytest.mark.parametrize("kernel", ["of today", "without pidfd_open"])
def test_an_end_is_seen_whatever_the_kernel_has(
    kernel: str, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: whether Python has the function decides; each trial then "could not start"."""
    if kernel == "without pidfd_open":
        monkeypatch.setattr(os, "pidfd_open", _refused)
    children = ChildWatch(watch)
    ends: dict[int, Exit] = {}
    for code in (3, 0):
        process = subprocess.Popen(["sh", "-c", f"exit {code}"], start_new_session=True)
        process.returncode = 0  # reaped by the watch
        children.add(process.pid, lambda outcome, code=code: ends.update({code: outcome}))  # type: ignore[misc]
    wait_until(lambda: watch.dispatch() or len(ends) == 2, "both ends")
    assert {code: outcome.code for code, outcome in ends.items()} == {3: 3, 0: 0}
    assert children.pids() == set()
