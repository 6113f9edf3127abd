"""The real process, killed again and again while a store grows: not a byte differs in the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.support.fed import FedLife, bytes_below, fill, journal_of, led, new_folder
from tests.support.processes import wait_until

KILLS = 8


def sink(folder: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "dispatcher.cli", "sink", str(folder), *options]
    return subprocess.Popen(
        command, env={**os.environ, **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def has_begun(process: subprocess.Popen[str], out: Path) -> bool:
    return process.poll() is not None or any(out.rglob("trial-*"))


def finished(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out


@pytest.mark.slow
def test_eight_kills_at_random_moments_change_no_byte(tmp_path: Path) -> None:
    """Mutation: a file that is not cut back, or a cursor that is written too early."""
    folder = new_folder(tmp_path)
    fill(folder, 600, 40)
    out = tmp_path / "out"
    dice = random.Random(os.urandom(8))
    killed = 0
    for _ in range(200):
        if killed == KILLS:
            break
        process = sink(folder, "--folder", str(out))
        begun = partial(has_begun, process, out)
        wait_until(begun, "it writes, or it was faster")
        with suppress(subprocess.TimeoutExpired):
            process.wait(dice.random() * 0.15)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        if process.returncode == 0:  # it was faster: begin anew
            for path in sorted(out.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
    assert killed == KILLS
    said = finished(sink(folder, "--folder", str(out)))
    assert "600 trials are in" in said
    finished(sink(folder, "--folder", str(tmp_path / "whole")))
    written, whole = bytes_below(out), bytes_below(tmp_path / "whole")
    assert len(whole) == 601
    assert [name for name in whole if written.get(name) != whole[name]] == []
    assert written.keys() == whole.keys()


def test_a_kill_between_the_files_and_the_cursor_changes_no_byte(tmp_path: Path) -> None:
    """Mutation: the cursor is written first, or files are only added to."""
    folder = new_folder(tmp_path)
    fill(folder, 450, 2)  # two looks
    out = tmp_path / "out"
    for place in ("sink.flushed", "sink.flushed", "sink.cursor.written", "sink.flushed"):
        process = sink(folder, "--folder", str(out), BEQUEATH_FAILPOINTS=f"{place}=kill")
        process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL
    finished(sink(folder, "--folder", str(out)))
    finished(sink(folder, "--folder", str(tmp_path / "whole")))
    written, whole = bytes_below(out), bytes_below(tmp_path / "whole")
    assert len(whole) == 451
    assert written == whole


@pytest.mark.slow
def test_a_search_that_goes_on_is_followed_through_kills(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    out = tmp_path / "out"
    dice = random.Random(os.urandom(8))
    with led(folder), journal_of(folder) as journal:
        life = FedLife(journal)
        over = threading.Event()

        def lead() -> None:
            for _ in life.some(range(1, 121), 30):
                over.wait(0.004)
            over.set()

        head = threading.Thread(target=lead)
        head.start()
        kills = 0
        while not over.is_set():
            process = sink(folder, "--folder", str(out), "--follow")
            over.wait(1.0 + dice.random())
            process.kill()
            process.communicate()
            kills += 1
        head.join()
    assert kills >= 2
    finished(sink(folder, "--folder", str(out)))
    finished(sink(folder, "--folder", str(tmp_path / "whole")))
    written, whole = bytes_below(out), bytes_below(tmp_path / "whole")
    assert len(whole) == 121
    assert written == whole
