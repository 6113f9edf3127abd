"""What ran in the recorded store: an assessor that stops trial 1 of six, and a trial that takes its
time to leave. The agent was killed meanwhile, and some trials later the head."""

from __future__ import annotations

import signal
import time
from typing import Any

import trial_runtime


class Stopper:
    """Stops trial 1 after its second metric."""

    def assess_trial(self, trial: str, history: list[Any]) -> bool:
        """Whether it may go on."""
        return not (trial == "1" and len(history) >= 2)

    def trial_end(self, trial: str, success: bool) -> None:
        """Nothing is kept."""


def main(parameters: dict[str, Any]) -> float:
    """Trial 1 reports twice and does not leave when it is asked to."""
    if trial_runtime.trial_id() == 1:
        signal.signal(signal.SIGTERM, lambda *_: None)
        trial_runtime.report_intermediate(0.5)
        trial_runtime.report_intermediate(0.75)
        while True:
            signal.pause()
    time.sleep(0.5)
    return 1.0
