"""A long run: twenty thousand trials in bounded memory, threads, descriptors and disk.

Not among the sections of ``make bench``: ``make soak`` runs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.rows import Row, row

MB = 1e6
EARLY = 1_000

#: By how much anything may grow between the early mark and the last.
GROWTH = 1.1

_WHO = {"head": "head", "tuner": "tuner host", "agent": "agent", "workers": "in-process workers"}
_WHAT = {"rss": "resident memory", "threads": "threads", "descriptors": "descriptors"}


def run(*, quick: bool = False) -> list[Row]:
    """All rows; ``quick`` runs a tenth of the trials."""
    trials = 2_000 if quick else 20_000
    long = measured("run_soak", trials=trials, marks=[EARLY, trials // 2, trials])
    finished, running = (1_000, 100) if quick else (10_000, 1_000)
    restart = measured("run_restart", finished=finished, running=running)
    return [*growth(long, trials), *disk(long, trials), _ready(restart, finished, running)]


def measured(module: str, **options: Any) -> dict[str, Any]:
    """What a module prints, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", json.dumps(options)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=3_600,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def growth(result: dict[str, Any], trials: int) -> list[Row]:
    """One row for each kind of process and each thing that it could hold on to."""
    early = result["samples"][str(EARLY)]["processes"]
    late = result["samples"][str(trials)]["processes"]
    rows = []
    for who, name in _WHO.items():
        for what, noun in _WHAT.items():
            before, after = early[who][what], late[who][what]
            told = f"{before} → {after}"
            if what == "rss":
                told = f"{before / MB:.1f} → {after / MB:.1f} MB"
            rows.append(
                row(
                    f"{noun} of the {name} at trial {trials:,} against trial {EARLY:,}",
                    f"≤ {GROWTH:g} ×",
                    f"{after / before:.2f} × ({told})",
                    after <= GROWTH * before,
                )
            )
    return rows


def disk(result: dict[str, Any], trials: int) -> list[Row]:
    """What the run left on disk."""
    files = result["samples"][str(trials)]["files"]
    log = files["journal.sqlite-wal"]
    each = result["compacted_bytes"] / result["trials"]
    whole = result["store_bytes"] / result["trials"]
    holds = result["verified"] and result["phase"] == "completed"
    return [
        row(
            "journal after compaction, a trial without metrics",
            "≤ 2 KB",
            f"{each:,.0f} bytes",
            each <= 2_000 and holds,
            f"at the end of the run {whole:,.0f} bytes a trial, {result['rows']:,} rows left of "
            f"{6 * result['trials']:,}; 'verify' finds {'nothing' if holds else 'a difference'}",
        ),
        row(
            "SQLite's log beside the journal",
            "≤ 32 MB",
            f"{log / MB:.1f} MB",
            log <= 32 * MB,
        ),
        row(
            "entries in the experiment's folder against trial 1,000",
            "≤ 1.1 ×",
            f"{_entries(result, EARLY)} → {_entries(result, trials)}",
            _entries(result, trials) <= GROWTH * _entries(result, EARLY),
            f"{trials:,} trials in {result['seconds']:.0f} s",
        ),
    ]


def _entries(result: dict[str, Any], mark: int) -> int:
    return int(result["samples"][str(mark)]["entries"])


def _ready(result: dict[str, Any], finished: int, running: int) -> Row:
    seconds = result["seconds"]
    what = f"restart with {finished:,} finished and {running:,} running trials: ready"
    if seconds is None:
        return row(what, "≤ 10 s", "never", False)
    detail = "a tuner with state(); not compacted; from the head's first step to a tuner that "
    detail += "takes requests and an agent that has said hello"
    return row(what, "≤ 10 s", f"{seconds:.1f} s", seconds <= 10, detail)
