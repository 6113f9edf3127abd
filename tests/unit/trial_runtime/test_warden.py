"""Whom a warden ends, once its agent is gone."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.support.processes import wait_until
from trial_runtime.agent.processes import warden


def _start(mark: str, code: str) -> subprocess.Popen[bytes]:
    """As an agent does: each trial leads a session."""
    return subprocess.Popen(
        ["bash", "-c", code], env={**os.environ, "MARK": mark}, start_new_session=True
    )


def test_those_with_the_mark_and_all_of_their_sessions(tmp_path: Path) -> None:
    """A process may begin with an environment of its own. Mutation: the mark alone counts."""
    note = tmp_path / "pid"
    code = f"env -i sh -c 'echo $$ > {note}.new; mv {note}.new {note}; exec sleep 600' & sleep 600"
    ours, another = _start("ours", code), _start("ours-too", "sleep 600")
    try:
        wait_until(note.exists, "the process without a mark")
        without = int(note.read_text())
        assert warden.end_marked(b"MARK=ours", {os.getsid(0)}) >= 2
        # Its own end, or that of the child for which bash waits, whichever comes first.
        assert ours.wait(120) in (-signal.SIGKILL, 128 + signal.SIGKILL)
        wait_until(lambda: not _runs(without), "its end", 120)
        assert another.poll() is None
        # What was just killed is there for a moment.
        wait_until(
            lambda: warden.end_marked(b"MARK=ours", {os.getsid(0)}) == 0, "the end of all", 120
        )
    finally:
        for each in (ours, another):
            if each.poll() is None:
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def test_a_session_that_is_spared_is_left_alone() -> None:
    """That of the agent and its own. Mutation: whoever has the mark is ended, whatever it is."""
    marked = _start("spared", "sleep 600")
    try:
        assert warden.end_marked(b"MARK=spared", {os.getsid(0), os.getsid(marked.pid)}) == 0
        assert marked.poll() is None
    finally:
        os.killpg(marked.pid, signal.SIGKILL)
        marked.wait()


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
