"""A peer's run leaves neither processes nor files, and its failure is a result."""

import json
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks import peer_runs
from benchmarks.peer_runs import Peer
from tests.support.processes import wait_until

DAEMON = """
import json, os, subprocess, sys
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
print("chatter")
open({seen!r}, "w").write(json.dumps([child.pid, os.getcwd()]))
"""
RESULT = """
print(json.dumps(dict(peer="P", version="1", trials=int(sys.argv[1]), seconds=2.0,
                      per_second=5.0, detail="")))
"""
NEVER = """
import time
time.sleep(600)
"""


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """Runs a script of the test's own as if it were a peer."""

    def run(source: str, limit_s: float = 60.0) -> peer_runs.PeerResult:
        (tmp_path / "script.py").write_text(source)
        monkeypatch.setattr(peer_runs, "SCRIPTS", tmp_path)
        monkeypatch.setattr(peer_runs, "python_of", lambda name: Path(sys.executable))
        monkeypatch.setattr(peer_runs, "_measured", {})
        monkeypatch.setitem(peer_runs.PEERS, "fake", Peer("x", "script.py", 10, 1, limit_s))
        return peer_runs.measure("fake")

    return run


def gone(seen: Path) -> bool:
    pid, folder = json.loads(seen.read_text())
    return not alive(pid) and not Path(folder).exists()


def alive(pid: int) -> bool:
    """A zombie, which init has not taken yet, is not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_detached_daemon_ends_with_the_run(fake, tmp_path):
    result = fake(DAEMON.format(seen=str(tmp_path / "seen")) + RESULT)

    assert result.per_second == 5.0
    assert result.trials == 10
    wait_until(lambda: gone(tmp_path / "seen"), "its daemon and its folder are gone")


def test_a_script_that_takes_too_long_ends_with_its_daemon(fake, tmp_path):
    result = fake(DAEMON.format(seen=str(tmp_path / "seen")) + NEVER, limit_s=3.0)

    assert result.per_second is None
    assert "not done within 3 s" in str(result)
    wait_until(lambda: gone(tmp_path / "seen"), "its daemon and its folder are gone")


def test_a_script_that_fails_says_why(fake):
    result = fake("raise ValueError('no such peer')")

    assert not result.ok
    assert result.reason == "exit code 1: ValueError: no such peer"


def test_a_peer_is_measured_once(fake, tmp_path):
    count = f"open({str(tmp_path / 'count')!r}, 'a').write('x')\nimport json, sys\n"

    first = fake(count + RESULT)

    assert peer_runs.measure("fake") is first
    assert (tmp_path / "count").read_text() == "x"
