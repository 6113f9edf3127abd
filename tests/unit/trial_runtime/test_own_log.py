"""The agent's own log stays within its bound, and its end is there."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

WRITER = """
import logging, sys
from pathlib import Path
from trial_runtime.agent.base.own_log import OwnLog

handler = OwnLog(Path(sys.argv[1]), max_bytes=20_000, kept_bytes=5_000)
logging.basicConfig(level=logging.INFO, handlers=[handler])
for number in range(2_000):
    logging.info("line %05d of many", number)
"""


def _write(log: Path, stderr: Path) -> None:
    with stderr.open("ab") as file:
        subprocess.run([sys.executable, "-c", WRITER, str(log)], stderr=file, check=True)


def test_it_is_cut_and_its_end_kept(tmp_path: Path) -> None:
    log = tmp_path / "agent.log"
    _write(log, log)
    assert log.stat().st_size <= 20_100
    kept = (tmp_path / "agent.log.1").read_text()
    assert len(kept) == 5_000
    lines = [int(line.split()[3]) for line in (kept + log.read_text()).splitlines()[1:]]
    assert lines[-1] == 1_999
    assert lines == list(range(lines[0], 2_000)), "no line in between is lost"
    assert b"\0" not in log.read_bytes(), "those who write append"


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    log, other = tmp_path / "agent.log", tmp_path / "journal of the service"
    log.touch()
    _write(log, other)
    assert other.read_text().count("\n") == 2_000
    assert not (tmp_path / "agent.log.1").exists()


def test_times_are_utc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")  # fourteen hours ahead
    log = tmp_path / "agent.log"
    _write(log, log)
    said = log.read_text().splitlines()[-1].split()[0]
    assert said.endswith("Z")
    written = datetime.fromisoformat(said.replace("Z", "+00:00"))
    assert abs((datetime.now(UTC) - written).total_seconds()) < 3600
