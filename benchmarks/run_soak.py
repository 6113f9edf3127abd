"""Run one long experiment and print what it held on to, as JSON.

Usage: ``python -m benchmarks.run_soak '{"trials": 20000, "marks": [1000, 20000]}'``. The head
runs here. Memory, threads and descriptors of head, tuner host, agent and its workers are read
from the kernel when given numbers of trials are over; afterwards the store is compacted.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.rows import median
from benchmarks.run_experiment import TRIALS
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from dispatcher.head.collector import walk_less
from dispatcher.head.head import Head
from dispatcher.store import SqliteJournal
from dispatcher.store.replay.folding import compact
from dispatcher.store.verify import verify

#: Trials after the last mark: when that is taken, all processes are still at work.
MARGIN = 400

#: Looks at each mark, some milliseconds apart; of each figure the median counts, since threads
#: of single requests come and go.
LOOKS = 7

_NAMES = {"dispatcher.tuner_host": "tuner", "trial_runtime.agent": "agent"}


def experiment(options: dict[str, Any], base: str) -> dict[str, Any]:
    """The experiment file as a mapping."""
    tuner = options.get("tuner", "Remembering")
    return {
        "experimentName": "soak",
        "experimentWorkingDirectory": base,
        "tuner": {"className": f"tuners_for_benchmarks:{tuner}", "codeDirectory": str(TRIALS)},
        "trialFunction": "empty:train",
        "trialCodeDirectory": str(TRIALS),
        "trialConcurrency": 2,
        "maxTrialNumber": options["trials"] + MARGIN,
        "trainingService": {"platform": "local", "reuseMode": "inProcess"},
    }


class Watch(threading.Thread):
    """Samples all processes when a number of trials is over."""

    def __init__(self, head: Head, folder: Path, at: list[int]) -> None:
        super().__init__(name="watch", daemon=True)
        self.head = head
        self.folder = folder
        self.at = sorted(at)
        self.samples: dict[int, dict[str, Any]] = {}

    def run(self) -> None:
        """The thread."""
        for mark in self.at:
            while self.head.trials_over < mark:
                time.sleep(0.01)
            self.samples[mark] = {
                "processes": medians([self.look() for _ in range(LOOKS)]),
                "files": {
                    name: _size(self.folder / name)
                    for name in ("journal.sqlite", "journal.sqlite-wal", "logs", "trials")
                },
                "entries": sum(1 for _ in self.folder.rglob("*")),
            }

    def look(self) -> dict[str, dict[str, int]]:
        """All processes, a moment later."""
        time.sleep(0.02)
        return processes()


def medians(looks: list[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
    """Figure by figure."""
    first = looks[0]
    return {
        who: {what: int(median([look[who][what] for look in looks])) for what in first[who]}
        for who in first
    }


def processes() -> dict[str, dict[str, int]]:
    """Resident bytes, threads and descriptors: of the head, of what it started, and the sum of
    the agent's workers."""
    found = {"head": _of(psutil.Process())}
    for child in psutil.Process().children():
        if child.status() == psutil.STATUS_ZOMBIE:
            continue
        line = " ".join(child.cmdline())
        for module, name in _NAMES.items():
            if module in line:
                found[name] = _of(child)
                if name == "agent":
                    below = [_of(one) for one in child.children(recursive=True)]
                    keys = ("rss", "threads", "descriptors")
                    found["workers"] = {key: sum(one[key] for one in below) for key in keys}
    return found


def _of(process: psutil.Process) -> dict[str, int]:
    return {
        "rss": process.memory_info().rss,
        "threads": process.num_threads(),
        "descriptors": process.num_fds(),
    }


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
    return path.stat().st_size if path.exists() else 0


def main() -> None:
    """Run it."""
    options = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="bq-soak-") as base:
        folder = create(build_experiment(experiment(options, base), base_folder=Path(base)))
        head = Head(folder)
        walk_less()  # as in a head's own process
        watch = Watch(head, folder, options["marks"])
        watch.start()
        began = time.perf_counter()
        phase = head.run()
        seconds = time.perf_counter() - began
        watch.join(30)
        store = folder / "journal.sqlite"
        before = store.stat().st_size
        journal = SqliteJournal.open(store)
        rows = journal.query("SELECT count(*) FROM journal")[0][0]
        compact(journal)
        journal.close()
        found = verify(store)
        result = {
            "phase": phase.value,
            "seconds": seconds,
            "samples": watch.samples,
            "rows": rows,
            "store_bytes": before,
            "compacted_bytes": store.stat().st_size,
            "verified": found.ok,
            "trials": found.trials,
            "left": len(os.listdir(folder / "trials")) if (folder / "trials").exists() else 0,
        }
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
