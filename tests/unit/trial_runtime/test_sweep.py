"""What a dead agent left is found by its session files, wherever it is in its life."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from trial_runtime.agent.processes import sweep
from trial_runtime.agent.processes.warden import environment_of
from trial_runtime.session_file import AGENT_VARIABLE, SESSION_VARIABLE


def _start(session: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"], env={**os.environ, SESSION_VARIABLE: str(session)})


def test_who_is_killed_may_just_have_started_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the list of processes is read once."""
    of_ours, of_another = tmp_path / "r", tmp_path / "rr"
    started = [_start(of_ours / "s1.json")]
    stranger = _start(of_another / "s1.json")
    kill = sweep.kill

    def kill_late(pid: int) -> None:
        if len(started) < 3:  # at the last moment before its end
            started.append(_start(of_ours / f"s{len(started) + 1}.json"))
        kill(pid)

    monkeypatch.setattr(sweep, "kill", kill_late)
    try:
        assert sweep.kill_sessions_below(str(of_ours)) == 3
        assert [each.wait(120) for each in started] == [-signal.SIGKILL] * 3
        assert stranger.poll() is None
        assert sweep.kill_sessions_below(str(of_ours)) == 0
    finally:
        for each in [*started, stranger]:
            each.kill()
            each.wait()


def test_an_environment_is_never_taken_for_an_empty_one(tmp_path: Path) -> None:
    """Of one that is just beginning its program. Mutations: what the kernel shows then is all; an
    environment that is being laid out is an empty one (1 % of the tries)."""
    tries = 1000
    for _ in range(tries):
        process = _start(tmp_path / "r" / "s.json")
        try:
            seen = environment_of(process.pid)
        finally:
            process.kill()
            process.wait()
        assert seen is None or os.fsencode(f"{SESSION_VARIABLE}={tmp_path}/r/s.json") in seen
    assert environment_of(process.pid) == b"", "it has ended"
    assert environment_of(2) is not None, "nobody waits for a thread of the kernel"


def test_nobody_waits_for_an_environment_that_is_empty() -> None:
    process = subprocess.Popen([shutil.which("sleep") or "sleep", "600"], env={})
    try:
        until = time.monotonic() + 120
        while environment_of(process.pid) is None:
            assert time.monotonic() < until
        assert environment_of(process.pid) == b""
    finally:
        process.kill()
        process.wait()


def test_what_carries_no_session_is_known_by_its_agent(tmp_path: Path) -> None:
    """What a forked trial forks carries the environment of its server, in which the session is
    empty. Mutation: sessions alone are looked for."""
    environment = {SESSION_VARIABLE: "", AGENT_VARIABLE: f"{tmp_path}/r/agent-1-a"}
    ours = subprocess.Popen(["sleep", "600"], env=os.environ | environment)
    environment = {SESSION_VARIABLE: "", AGENT_VARIABLE: f"{tmp_path}/rr/agent-1-a"}
    another = subprocess.Popen(["sleep", "600"], env=os.environ | environment)
    try:
        assert sweep.kill_sessions_below(str(tmp_path / "r")) == 1
        assert ours.wait(120) == -signal.SIGKILL
        assert another.poll() is None
    finally:
        for each in (ours, another):
            each.kill()
            each.wait()
