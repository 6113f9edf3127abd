"""Parts of the engines' section keep what they have, and leave nothing behind."""

import os
import subprocess
import sys

import psutil
import pytest

from benchmarks.engines import spaces
from benchmarks.engines.steps import Step, taken
from benchmarks.rows import row
from tests.support.processes import wait_until

#: Prints a row, starts a process that outlives it, and goes on for as long as it is let.
_PART = """
import json, subprocess, sys
row = {"what": "first", "target": "", "measured": "1", "ok": None, "detail": ""}
print(json.dumps(row), flush=True)
subprocess.Popen(["sleep", sys.argv[1]], start_new_session=True)
print("said by the way", flush=True)
if sys.argv[2] == "fails":
    sys.exit(3)
subprocess.run(["sleep", sys.argv[2]])
"""

root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for process numbers of its own")


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.setattr(spaces, "BASES", (tmp_path, tmp_path))
    program = tmp_path / "program.py"
    program.write_text(_PART)
    monkeypatch.setattr(spaces, "command_of", lambda part, words: [str(program), *words])


def sleepers(seconds):
    return [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", seconds]]


def test_a_step_that_fails_is_a_row_with_its_target_and_the_others_go_on(capsys):
    good = row("a", "≤ 1", "2", False)

    def fails():
        raise OSError("no room")

    rows = list(taken([Step("x", "≤ 5 s", fails), Step("a", "≤ 1", lambda: [good])]))

    assert [(one["what"], one["target"], one["measured"]) for one in rows] == [
        ("x", "≤ 5 s", "failed"),
        ("a", "≤ 1", "2"),
    ]
    assert "OSError: no room" in rows[0]["detail"]
    assert "a: 0 s" in capsys.readouterr().err


@root
def test_a_part_that_fails_keeps_its_rows_and_leaves_no_process(tmp_path):
    rows = spaces.rows_in_spaces("p", ["9871", "fails"], limit_s=60, network=False)

    assert [one["measured"] for one in rows] == ["1", "failed"]
    assert rows[1]["detail"] == "its process has ended with 3"
    wait_until(lambda: not sleepers("9871"), "what it has started has ended", 10)
    assert not list(tmp_path.glob("bqe-*"))


@root
def test_a_part_that_takes_too_long_is_ended_with_what_it_has_started():
    rows = spaces.rows_in_spaces("p", ["9872", "600"], limit_s=3.0, network=True)

    assert [one["measured"] for one in rows] == ["1", "failed"]
    assert "not done within" in rows[1]["detail"]
    wait_until(lambda: not sleepers("9872"), "what it has started has ended", 10)


@root
def test_a_run_that_is_killed_leaves_no_process_and_the_next_removes_its_files(tmp_path):
    code = (
        "import sys; from pathlib import Path; from benchmarks.engines import spaces\n"
        "base = Path(sys.argv[1]); spaces.BASES = (base, base)\n"
        "spaces.command_of = lambda part, words: [str(base / 'program.py'), *words]\n"
        "spaces.rows_in_spaces('p', ['9873', '600'], limit_s=600, network=True)\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    wait_until(lambda: sleepers("9873"), "it runs", 60)
    (held, *_) = folders = list(tmp_path.glob("bqe-*"))
    assert len(folders) == 2
    assert not spaces.remove_if_left(held)
    run.kill()
    run.wait()

    wait_until(lambda: not sleepers("9873"), "what it has started has ended", 10)
    spaces.rows_in_spaces("p", ["9874", "0"], limit_s=60, network=True)

    assert not list(tmp_path.glob("bqe-*"))
