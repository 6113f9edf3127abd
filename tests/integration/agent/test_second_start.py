"""An engine that starts one pod twice: the second agent leaves, and the first has lost nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import wait_until
from trial_runtime.agent.base.start_lock import StartLock
from trial_runtime.agent.config import AgentConfig, TrialSpec, encode_config
from trial_runtime.endpoint import Endpoint

HOLD = """
import signal, sys
from pathlib import Path
from trial_runtime.agent.base.start_lock import StartLock
lock = StartLock(Path(sys.argv[1]), "q-1", "a ticket")
print(lock.take(), flush=True)
signal.pause()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def _config(home: Path, path: Path, ticket: str) -> Path:
    config = AgentConfig(
        worker="q-1",
        slots=1,
        head=Endpoint(f"ipc://{home}/nobody"),
        epoch=1,
        run_folder="",
        experiment_folder=str(home),
        trial=TrialSpec(str(home), command="true", environment={}),
        weights_root=str(home),
        head_grace_s=0.0,
        heartbeat_s=0.1,
        ticket=ticket,
    )
    path.write_bytes(encode_config(config))
    return path


def _run(config: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trial_runtime.agent", str(config)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_second_start_leaves_and_touches_nothing(home: Path, tmp_path: Path) -> None:
    first = subprocess.Popen([sys.executable, "-c", HOLD, home], stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "True\n"
        (home / "spool-q-1").write_text("of the first")
        before = sorted(home.iterdir())
        config = _config(home, tmp_path / "config", "a ticket")
        second = _run(config)
        assert second.returncode == 1
        assert "started its allocation a second time" in second.stderr
        assert config.exists(), "the first reads it again"
        assert sorted(home.iterdir()) == before
        assert (home / "spool-q-1").read_text() == "of the first"

        other = _run(_config(home, tmp_path / "next", "the next ticket"))
        assert other.returncode == 0, "the next allocation waits for no file server"
    finally:
        first.kill()
        first.communicate()
    third = _run(_config(home, tmp_path / "config", "a ticket"))
    assert third.returncode == 0, third.stderr
    assert list(home.glob("*.lock")) == [], "it has left nothing"


def test_what_an_agent_forked_does_not_hold_its_lock(home: Path) -> None:
    """Mutation: a lock of the open file, which every child of the agent shares."""
    holder = os.fork()
    if holder == 0:
        StartLock(home, "q-1", "a ticket").take()
        if os.fork() == 0:
            (home / "child").write_text(str(os.getpid()))
            signal.pause()
        os._exit(0)
    os.waitpid(holder, 0)
    wait_until(lambda: (home / "child").exists() and (home / "child").read_text(), "it has forked")
    child = int((home / "child").read_text())
    try:
        assert StartLock(home, "q-1", "a ticket").take()
    finally:
        os.kill(child, signal.SIGKILL)


def test_files_of_killed_agents_go_with_the_next_one_that_starts(home: Path) -> None:
    def killed(ticket: str) -> None:
        pid = os.fork()
        if pid == 0:
            StartLock(home, "q-1", ticket).take()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)

    first = subprocess.Popen([sys.executable, "-c", HOLD, home], stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "True\n"
        running = {path.name for path in home.iterdir()}
        for number in range(5):
            killed(f"ticket {number}")
        (home / "agent-q-1.config.json").write_text("{}")
        (home / "agent-q-12.0123abcd.lock").touch()  # another worker's
        last = StartLock(home, "q-1", "the last")
        assert last.take()
        left = {path.name for path in home.iterdir()}
        others = {"agent-q-1.config.json", "agent-q-12.0123abcd.lock"}
        assert left > running | others
        assert len(left - running - others) == 1, "its own"
        assert not StartLock(home, "q-1", "a ticket").take(), "the first still has its lock"
    finally:
        first.kill()
        first.communicate()
