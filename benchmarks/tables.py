"""What it takes to look at a search of 100,000 trials from the command line, as whole processes.

The store is one of :mod:`benchmarks.web.stores`, whose rows were multiplied in its tables: readers
look at nothing else.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, median, row
from benchmarks.web import stores
from dispatcher.folders.names import CONFIG_NAME, STORE_NAME

#: Trials, and those that are made by the core before their rows are multiplied.
TRIALS, QUICK_TRIALS, MADE = 100_000, 20_000, 2_000
METRICS = 10
ROUNDS, QUICK_ROUNDS = 7, 3

LIST_S, PICTURE_S, PICTURE_MB = 1.0, 5.0, 200

#: Times what `bequeath --help` takes in the same rounds. Chosen as benchmarks/README.md tells.
BESIDE_HELP = 15.0


class Spent(NamedTuple):
    """What a process took: seconds on the clock, and the most memory in bytes."""

    wall_s: float
    rss_bytes: int


def run(*, quick: bool = False) -> list[Row]:
    """The table, and the picture with the most lines."""
    many = QUICK_TRIALS if quick else TRIALS
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with tempfile.TemporaryDirectory(prefix="bequeath-") as base:
        home = multiplied(Path(base), many)
        picture = str(Path(base, "parallel.png"))
        commands = {
            "help": ["--help"],
            "ls": ["trial", "ls"],
            "best": ["trial", "ls", "--sort", "value", "-n", "10", "--where", "lr<0.01"],
            "parallel": ["plot", "parallel", "--out", picture],
        }
        spent: dict[str, list[Spent]] = {name: [] for name in commands}
        for number in range(rounds + 1):  # the first one warms the caches
            for name, words in commands.items():
                one = command(home, words)
                if number:
                    spent[name].append(one)
    return _rows(many, spent)


def _rows(many: int, spent: dict[str, list[Spent]]) -> list[Row]:
    took = {name: median([one.wall_s for one in each]) for name, each in spent.items()}
    beside = median(
        [ls.wall_s / help.wall_s for ls, help in zip(spent["ls"], spent["help"], strict=True)]
    )
    drawn = max(one.rss_bytes for one in spent["parallel"]) / 1e6
    listed = max(one.rss_bytes for one in spent["ls"]) / 1e6
    medians = f"medians of {len(spent['ls'])} rounds"
    return [
        row(
            f"`bequeath trial ls`, {many:,} trials",
            f"≤ {LIST_S:g} s",
            f"{took['ls']:.2f} s",
            took["ls"] <= LIST_S,
            f"{medians}; a table of 10,000 rows into a pipe, {listed:.0f} MB; the ten best of a "
            f"condition in {took['best']:.2f} s",
        ),
        row(
            "… against `bequeath --help`",
            f"≤ {BESIDE_HELP:g} ×",
            f"{beside:.1f} ×",
            beside <= BESIDE_HELP,
            f"`--help` takes {took['help']:.3f} s",
        ),
        row(
            f"`bequeath plot parallel`, {many:,} trials",
            f"≤ {PICTURE_S:g} s",
            f"{took['parallel']:.2f} s",
            took["parallel"] <= PICTURE_S,
            medians,
        ),
        row(
            "… the most memory",
            f"≤ {PICTURE_MB} MB",
            f"{drawn:.0f} MB",
            drawn <= PICTURE_MB,
            "of the whole process",
        ),
    ]


def multiplied(base: Path, trials: int) -> Path:
    """Make a folder of experiments with one of so many trials; return it.

    Args:
        base: a folder for it.
        trials: a multiple of :data:`MADE`.
    """
    folder = base / stores.EXPERIMENT
    folder.mkdir()
    made = stores.made(MADE, METRICS) / stores.EXPERIMENT
    for name in (CONFIG_NAME, STORE_NAME):
        shutil.copy(made / name, folder)
    with closing(sqlite3.connect(folder / STORE_NAME)) as store:
        (step,) = store.execute("SELECT max(id) + 1 FROM trials").fetchone()
        for table, key in (("trials", "id"), ("attempts", "trial"), ("metrics", "trial")):
            rest = [one[1] for one in store.execute(f"PRAGMA table_info({table})") if one[1] != key]
            for times in range(1, trials // MADE):
                moved = [f"parent + {times * step}" if one == "parent" else one for one in rest]
                store.execute(
                    f"INSERT INTO {table} ({key}, {', '.join(rest)}) "
                    f"SELECT {key} + {times * step}, {', '.join(moved)} FROM {table} "
                    f"WHERE {key} < {step}"
                )
        store.commit()
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return base


def command(home: Path, words: list[str]) -> Spent:
    """Run a command over a folder of experiments.

    Args:
        home: the folder.
        words: of the command line.

    Raises:
        RuntimeError: it failed.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "dispatcher.cli", *words],
        env={**os.environ, "BEQUEATH_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"`bequeath {' '.join(words)}` ended with {process.returncode}")
    return Spent(took, used.ru_maxrss * 1024)
