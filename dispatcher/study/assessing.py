"""The assessor of a study, asked in the program's own thread."""

from __future__ import annotations

import json
from typing import Any, Self

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.tuner_host.load import build_assessor
from dispatcher.wiring.tuner_host import tuner_host_config
from trial_runtime.endpoint import Endpoint


class StudyAssessor:
    """Shows an assessor the reports of trials that run. Not thread-safe."""

    def __init__(self, assessor: Any) -> None:
        self._assessor = assessor
        self._histories: dict[int, list[Any]] = {}
        self._stopped: set[int] = set()

    @classmethod
    def of(cls, config: ExperimentConfig, place: ExperimentFolder) -> Self | None:
        """Build the assessor that the file names; None if it names none."""
        spec = tuner_host_config(config, place, Endpoint(""), 0).assessor
        if spec is None:
            return None
        return cls(build_assessor(spec, config.optimize_mode or ""))

    def goes_on(self, number: int, text: str) -> bool:
        """Show one more report of a trial; return whether it may go on. True once it was stopped.

        Raises what the assessor raises.
        """
        if number in self._stopped:
            return True
        history = self._histories.setdefault(number, [])
        history.append(json.loads(text))
        verdict = self._assessor.assess_trial(str(number), list(history))
        if bool(getattr(verdict, "value", verdict)):
            return True
        self._stopped.add(number)
        return False

    def end(self, number: int, *, success: bool) -> None:
        """Show it the end of a trial, if it was shown any of its reports."""
        self._stopped.discard(number)
        if self._histories.pop(number, None) is not None:
            self._assessor.trial_end(str(number), success)
