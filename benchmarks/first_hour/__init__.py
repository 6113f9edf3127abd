"""The first hour of somebody who knows Optuna: a first search, and a loop of ask and tell.

Ours and theirs take turns, in processes of their own and in one environment; figures are medians.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.rows import Row, median, row

HERE = Path(__file__).parent

#: Rounds of each comparison; trials of a loop; and those of a loop that waits for SQLite.
ROUNDS, QUICK_ROUNDS = 7, 2
TRIALS, QUICK_TRIALS = 1_000, 60
SQLITE_TRIALS = 200

FIRST_S, FIRST = 1.5, 1.5
MEMORY, SQLITE = 1.2, 0.2


def run(*, quick: bool = False) -> list[Row]:
    """The rows; blocks for a few minutes."""
    rounds, trials = (QUICK_ROUNDS, QUICK_TRIALS) if quick else (ROUNDS, TRIALS)
    rows = [
        *_first_results(rounds),
        _loops("in memory", "memory", trials, rounds, MEMORY),
        _loops("with SQLite", "sqlite", min(trials, SQLITE_TRIALS), rounds, SQLITE),
    ]
    return [Row({**each, "ok": None}) for each in rows] if quick else rows


def _first_results(rounds: int) -> list[Row]:
    ours, theirs = [], []
    for turn in range(rounds + 1):  # the first one warms the caches
        took = {name: _first(name) for name in _in_turns(turn, "first_ours", "first_optuna")}
        if turn:
            ours.append(took["first_ours"])
            theirs.append(took["first_optuna"])
    ratio = median([a / b for a, b in zip(ours, theirs, strict=True)])
    return [
        row(
            "a first search: from the start of its process to its first result",
            f"≤ {FIRST_S:g} s",
            f"{median(ours):.2f} s",
            median(ours) <= FIRST_S,
            f"median of {rounds}, {min(ours):.2f} to {max(ours):.2f}; a process with everything "
            "to import, and a folder with nothing in it",
        ),
        row(
            "… against Optuna's, with SQLite",
            f"≤ {FIRST:g} ×",
            f"{ratio:.2f} × ({median(ours):.2f} against {median(theirs):.2f} s)",
            ratio <= FIRST,
            f"the median ratio of {rounds} pairs in turns",
        ),
    ]


def _first(name: str) -> float:
    """Seconds from a process's start until it has printed the result of its first trial."""
    with tempfile.TemporaryDirectory(prefix="bequeath-first-") as folder:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, str(HERE / f"{name}.py")],
            cwd=folder,
            env={**os.environ, "BEQUEATH_HOME": folder},
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        took = time.perf_counter() - began
        process.stdout.read()
        process.stdout.close()
        if process.wait() or not first:
            raise RuntimeError(f"{name}.py failed")
    return took


def _loops(what: str, peer: str, trials: int, rounds: int, most: float) -> Row:
    ratios, ours, theirs = [], [], []
    for turn in range(rounds):
        took = {name: _loop(name, trials) for name in _in_turns(turn, "ours", peer)}
        ours.append(took["ours"])
        theirs.append(took[peer])
        ratios.append(took["ours"] / took[peer])
    return row(
        f"ask and tell, {trials:,} trials of TPE, against Optuna {what}",
        f"≤ {most:g} ×",
        f"{median(ratios):.2f} × ({_ms(ours, trials)} against {_ms(theirs, trials)} ms a trial)",
        median(ratios) <= most,
        f"the median ratio of {rounds} pairs in turns ({min(ratios):.2f} to {max(ratios):.2f}), on "
        "the clock, the opening of the study included; ours is in its store when tell returns, or "
        "milliseconds later",
    )


def _ms(seconds: list[float], trials: int) -> str:
    return f"{1e3 * median(seconds) / trials:.2f}"


def _loop(name: str, trials: int) -> float:
    """Seconds of a loop, without what is imported for it."""
    with tempfile.TemporaryDirectory(prefix="bequeath-loop-") as folder:
        done = subprocess.run(
            [sys.executable, str(HERE / "loop.py"), name, str(trials)],
            cwd=folder,
            env={**os.environ, "BEQUEATH_HOME": folder},
            stdout=subprocess.PIPE,
            check=True,
        )
    return float(json.loads(done.stdout))


def _in_turns(turn: int, *names: str) -> tuple[str, ...]:
    return names if turn % 2 == 0 else names[::-1]
