"""The script by which an agent begins: run by a real shell, with variables that are no friends."""

from __future__ import annotations

import subprocess
import sys
import time
from base64 import b64encode
from pathlib import Path

import pytest

from dispatcher.platforms.http_jobs.launching import line_of_file, line_of_secret, start_script

NASTY = "a'b\"c $(touch hacked) `x` \\ é\nline two"

#: Tells what it was given.
SHOW = "import os, sys; sys.stdout.write(os.environ['A'] + '|' + open(sys.argv[1]).read() + '|')"
COMMAND = [sys.executable, "-c", SHOW]


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": str(folder)}
    return subprocess.run(
        ["sh", "-c", line], env=environment, cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_a_script_that_comes_by_a_secret(tmp_path: Path) -> None:
    """Mutations: a value is read by the shell; a file that others can read is left."""
    script = start_script(COMMAND, b'{"key": "k"}', {"A": NASTY, "B": ""})
    line = line_of_secret("PLACE")
    assert "PLACE" in line
    ran = run(line.replace("PLACE", b64encode(script).decode()), tmp_path)
    assert ran.stdout == f'{NASTY}|{{"key": "k"}}|', ran.stderr
    assert not list(tmp_path.glob("hacked"))
    (folder,) = tmp_path.iterdir()
    assert [each.name for each in folder.iterdir()] == ["config"]
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "config").stat().st_mode & 0o077 == 0


def test_a_script_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    start, config, log = (tmp_path / "a b" / name for name in ("x.start", "x.config", "log"))
    config.write_text("known")
    start.write_bytes(start_script(
        COMMAND, b"ignored", {"A": "1"}, config_path=str(config), log=str(log), title="who\nelse"
    ))  # fmt: skip
    ran = run(line_of_file(str(start)), tmp_path)
    assert log.read_text() == "1|known|", ran.stderr
    assert str(log) in ran.stdout, "people who look at the service's own log find it"
    assert not start.exists()
    again = run(line_of_file(str(start)), tmp_path)
    assert again.returncode != 0, "nobody begins a second time"


def test_a_log_that_cannot_be_written_is_said_and_does_without(tmp_path: Path) -> None:
    """Mutation: a shell that cannot write where the share belongs to somebody else ends without a
    word."""
    script = tmp_path / "s"
    script.write_bytes(start_script(COMMAND, b"c", {"A": "1"}, log=str(tmp_path / "none/log")))
    ran = run(line_of_file(str(script)), tmp_path)
    assert ran.stdout.endswith("1|c|"), ran.stderr
    assert "cannot write" in ran.stderr


def test_one_script_for_several_nodes_stays(tmp_path: Path) -> None:
    script = tmp_path / "s"
    script.write_bytes(start_script(COMMAND, b"c", {"A": "1"}, stays=True))
    for _ in range(2):
        assert run(line_of_file(str(script)), tmp_path).stdout == "1|c|"


@pytest.mark.parametrize("obeys", [True, False])
def test_a_wall_time_ends_it(obeys: bool, tmp_path: Path) -> None:
    """Asked first, and then by force."""
    ignores = "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    code = f"import signal; {'' if obeys else ignores}print('ready', flush=True); signal.pause()"
    script = tmp_path / "s"
    script.write_bytes(
        start_script([sys.executable, "-c", code], b"c", {}, wall_s=1.0, grace_s=-29.0)
    )
    began = time.monotonic()
    ran = run(line_of_file(str(script)), tmp_path)
    assert ran.stdout == "ready\n"
    assert ran.returncode == (124 if obeys else -9)
    assert time.monotonic() - began >= 0.9
