"""Run one experiment with empty trials in this process and print what it cost, as JSON.

Usage: ``python -m benchmarks.run_experiment '{"trials": 1000, "reuse": "inProcess", …}'``.
The head runs here, the tuner host and the agent below, as in real life; their CPU time is
read from the kernel when given numbers of trials are over.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

from benchmarks.counting import counting, waits_of
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from dispatcher.head.collector import walk_less
from dispatcher.head.head import Head

#: Whose CPU time counts; the order of a sample.
PARTS = ("head", "tuner", "agent")

#: Trials after the last mark: when that is taken, all processes are still there.
MARGIN = 5

TRIALS = Path(__file__).parent / "trials"


def experiment(options: dict[str, Any], base: str) -> dict[str, Any]:
    """The experiment file as a mapping."""
    return {
        "experimentName": "bench",
        "experimentWorkingDirectory": base,
        "tuner": {
            "className": "tuners_for_benchmarks:Counting",
            "codeDirectory": str(TRIALS),
            "classArgs": {
                "idle_at": options["trials"] - 1,
                "idle_s": 1.5 * options.get("idle_s", 0),
            },
        },
        "trialFunction": options.get("function", "empty:train"),
        "trialCodeDirectory": str(TRIALS),
        "trialConcurrency": options.get("concurrency", 2),
        "maxTrialNumber": options["trials"],
        "trainingService": {
            "platform": "local",
            "reuseMode": options.get("reuse", "none"),
            "preload": options.get("preload", []),
        },
    }


class Marks(threading.Thread):
    """Samples CPU time and wall time when a number of trials is over.

    Looks every ``look_s`` seconds. What this thread takes is not counted as the head's.
    """

    def __init__(
        self, head: Head, at: list[int], look_s: float, counts: Counter[str] | None = None
    ) -> None:
        super().__init__(name="marks", daemon=True)
        self.counts = counts
        self.head = head
        self.at = sorted(at)
        self.look_s = look_s
        self.samples: dict[int, dict[str, Any]] = {}
        self.last = 0  # the trial after which `at_end` is called
        self.at_end: Callable[[], None] = lambda: None

    def run(self) -> None:
        below: list[psutil.Process] = []
        waiting = list(self.at)
        while waiting or self.last:
            over = self.head.trials_over
            if over and not below:
                below = _tuner_host_and_agent()
            if waiting and over >= waiting[0]:
                self.samples[waiting.pop(0)] = sample(over, below, self.counts)
            elif self.last and over >= self.last:
                self.at_end()
                return
            else:
                time.sleep(self.look_s)


def sample(
    over: int, below: list[psutil.Process], counts: Counter[str] | None = None
) -> dict[str, Any]:
    """Wall seconds, and CPU seconds of head, tuner host and agent without the calling thread's,
    after ``over`` trials; of a run that is counted also the counts and each process's waits."""
    everyone = [psutil.Process(), *below]
    cpu = [sum(p.cpu_times()[:2]) for p in everyone]
    cpu[0] -= time.thread_time()  # of the thread that looks
    taken: dict[str, Any] = {"over": over, "wall": time.perf_counter(), "cpu": sum(cpu)}
    taken |= dict(zip(PARTS, cpu, strict=True))
    if counts is not None:
        waits = {f"waits of {who}": waits_of(p.pid) for who, p in zip(PARTS, everyone, strict=True)}
        taken["counts"] = dict(counts) | waits
    return taken


class Idle:
    """Looks at this process's memory while the last trial of an experiment idles."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.before = 0
        self.grown = 0

    def watch(self) -> None:
        """Called while the last trial idles, and the head with it."""
        process = psutil.Process(os.getpid())
        self.before = process.memory_info().rss
        time.sleep(self._seconds)
        self.grown = process.memory_info().rss - self.before


def _tuner_host_and_agent() -> list[psutil.Process]:
    found = {}
    for process in psutil.Process().children():
        line = " ".join(process.cmdline())
        for name in ("dispatcher.tuner_host", "trial_runtime.agent"):
            if name in line:
                found[name] = process
    return [found["dispatcher.tuner_host"], found["trial_runtime.agent"]]


def main() -> None:
    """Run it."""
    options = json.loads(sys.argv[1])
    options["trials"] += MARGIN
    with ExitStack() as stack:
        base = stack.enter_context(tempfile.TemporaryDirectory(prefix="bq-bench-"))
        config = build_experiment(experiment(options, base), base_folder=Path(base))
        folder = create(config)
        head = Head(folder)
        walk_less()  # as in a head's own process
        look_s = 0.02 if options.get("reuse", "none") == "none" else 0.002
        counts = stack.enter_context(counting()) if options.get("count") else None
        marks = Marks(head, options["marks"], look_s, counts)
        idle = Idle(options["idle_s"]) if "idle_s" in options else None
        if idle is not None:
            marks.at_end, marks.last = idle.watch, options["trials"] - 1
        marks.start()
        phase = head.run()
        marks.join(30)
        result = {
            "phase": phase.value,
            "samples": marks.samples,
            "threads": threading.active_count(),
            "rss_bytes": idle.before if idle else psutil.Process(os.getpid()).memory_info().rss,
            "idle_grown_bytes": idle.grown if idle else 0,
        }
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
