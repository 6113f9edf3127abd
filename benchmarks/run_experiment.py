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
from pathlib import Path
from typing import Any

import psutil

from dispatcher.experiment.loader import build_experiment
from dispatcher.head import Head, create
from dispatcher.notices import Notice, NoticeKind

TRIALS = Path(__file__).parent / "trials"


def experiment(options: dict[str, Any], base: str) -> dict[str, Any]:
    """The experiment file as a mapping."""
    return {
        "experimentName": "bench",
        "experimentWorkingDirectory": base,
        "tuner": {
            "className": "tuners_for_benchmarks:Counting",
            "codeDirectory": str(TRIALS),
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


class Marks:
    """Samples CPU time and wall time when a number of trials is over."""

    def __init__(self, at: list[int]) -> None:
        self.at = set(at)
        self.over = 0
        self.samples: dict[int, dict[str, float]] = {}
        self.below: list[psutil.Process] = []

    def __call__(self, notice: Notice) -> None:
        if notice.kind is not NoticeKind.TRIAL_OVER:
            return
        self.over += 1
        if self.over == 1:
            self.below = _tuner_host_and_agent()
        if self.over in self.at:
            self.samples[self.over] = self.sample()

    def sample(self) -> dict[str, float]:
        """Wall seconds, and CPU seconds of head, tuner host and agent."""
        cpu = [sum(p.cpu_times()[:2]) for p in [psutil.Process(), *self.below]]
        return {"wall": time.perf_counter(), "cpu": sum(cpu), "head": cpu[0], "tuner": cpu[1],
                "agent": cpu[2]}  # fmt: skip


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
    with tempfile.TemporaryDirectory(prefix="bq-bench-") as base:
        config = build_experiment(experiment(options, base), base_folder=Path(base))
        folder = create(config)
        marks = Marks(options["marks"])
        head = Head(folder, on_notice=marks)
        phase = head.run()
        result = {
            "phase": phase.value,
            "samples": marks.samples,
            "threads": threading.active_count(),
            "rss_bytes": psutil.Process(os.getpid()).memory_info().rss,
        }
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
