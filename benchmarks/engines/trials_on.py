"""Run one experiment with empty trials on a service, and print the times as JSON.

Usage: ``python -m benchmarks.engines.trials_on OPTIONS``, JSON with ``trials``, ``concurrency``
``service``; ``base``, a folder that its nodes see, if not all do; ``asked``, a file for requests.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import urllib3

from benchmarks.run_experiment import TRIALS
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from dispatcher.head.collector import walk_less
from dispatcher.head.head import Head

#: Trials before the first mark, of more than four times as many. The first in each place is one of
#: them, and waits until all places have one, and so long (seconds): an engine that has lent a place
#: makes the next one ready, and a head starts, too.
FIRST, SETTLE_S = 50, 2.0

_LOOK_S = 0.002


def experiment(options: dict[str, Any], base: str) -> dict[str, Any]:
    """The experiment file as a mapping."""
    return {
        "experimentName": "bench",
        "experimentWorkingDirectory": base,
        "tuner": {
            "className": "tuners_for_benchmarks:Counting",
            "codeDirectory": str(TRIALS),
            "classArgs": {"idle_at": options["trials"], "idle_s": 0},
        },
        "trialFunction": "gathered:train",
        "trialCodeDirectory": str(TRIALS),
        "trialEnvironment": {"GATHER": f"{base}/gathered {options['concurrency']} {SETTLE_S}"},
        "trialConcurrency": options["concurrency"],
        "maxTrialNumber": options["trials"],
        "weightsRoot": f"{base}/weights",
        "trainingService": options["service"],
    }


class _Watch(threading.Thread):
    """Notes when the first trials, and all of them, were over."""

    def __init__(self, head: Head, trials: int) -> None:
        super().__init__(name="watch", daemon=True)
        self._head = head
        self._trials = trials
        self.before = min(FIRST, trials // 4)
        self.first = self.last = 0.0
        self.cpu_s = 0.0  # of this process between the marks, but for this thread

    def run(self) -> None:
        while not self.last:
            over, now = self._head.trials_over, time.perf_counter()
            if over >= self.before and not self.first:
                self.first = now
                self.cpu_s = -self._cpu()
            if over >= self._trials:
                self.last = now
                self.cpu_s += self._cpu()
            time.sleep(_LOOK_S)

    @staticmethod
    def _cpu() -> float:
        return time.process_time() - time.thread_time()


def _note_requests(path: Path) -> None:
    """Have each request by HTTP leave a line in a file."""
    own = urllib3.HTTPConnectionPool.urlopen

    def urlopen(self: Any, method: str, url: str, *arguments: Any, **keys: Any) -> Any:
        with path.open("a") as file:
            file.write(f"{method} {url.partition('?')[0]}\n")
        return own(self, method, url, *arguments, **keys)

    path.touch()
    urllib3.HTTPConnectionPool.urlopen = urlopen  # type: ignore[method-assign]


def main() -> None:
    """Run it."""
    options = json.loads(sys.argv[1])
    if "asked" in options:
        _note_requests(Path(options["asked"]))
    with tempfile.TemporaryDirectory(prefix="bq-bench-", dir=options.get("base")) as base:
        folder = create(build_experiment(experiment(options, base), base_folder=Path(base)))
        started = time.perf_counter()
        head = Head(folder)
        walk_less()  # as in a head's own process
        watch = _Watch(head, options["trials"])
        watch.start()
        phase = head.run()
        watch.join(30)
    count = options["trials"] - watch.before
    print(
        json.dumps(
            {
                "phase": phase.value,
                "whole_s": watch.last - started,
                "trial_s": (watch.last - watch.first) / count,
                "head_cpu_s": watch.cpu_s / count,
            }
        )
    )


if __name__ == "__main__":
    main()
