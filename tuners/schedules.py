"""The schedule that a member of a population found: read from an experiment, and run again.

Jaderberg et al.: Population Based Training of Neural Networks, arXiv:1711.09846, the analysis of
its experiments: what is found is not one set of hyperparameters but a schedule of them, which can
be applied to a fresh network.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tuners.base import Tuner
from tuners.errors import NoMoreTrialError, TunerArgumentError, WaitNotAllowed

_PREFIX = "parameters."
_PATHS = ("save_path", "restore_path")


def schedule(rows: Iterable[Mapping[str, Any]], last: int) -> list[dict[str, Any]]:
    """Returns the hyperparameters that led to a trial's weights, the founder's first.

    Args:
        rows: all trials, as ``bequeath experiment export`` writes them in JSON. Nested parameters
            come in columns joined by dots there, so names with dots of their own look like
            nested ones.
        last: the trial that the schedule leads to, usually the best one.

    Raises:
        KeyError: that trial, or one of those before it, is not among the rows.
    """
    by_trial = {int(row["trial"]): row for row in rows}
    by_path = {row["save_path"]: trial for trial, row in by_trial.items() if row.get("save_path")}
    if last not in by_trial:
        raise KeyError(f"there is no trial {last} among the rows")
    steps: list[dict[str, Any]] = []
    trial: int | None = last
    while trial is not None:
        row = by_trial[trial]
        steps.append(_parameters(row))
        parent = row.get("restore_path")
        if parent and parent not in by_path:
            raise KeyError(f"trial {trial} starts from {parent!r}, which no row has saved")
        trial = by_path[parent] if parent else None
    return steps[::-1]


def _parameters(row: Mapping[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for column, value in row.items():
        name = column.removeprefix(_PREFIX)
        if not column.startswith(_PREFIX) or name in _PATHS:
            continue
        *parts, key = name.split(".")
        inner = whole
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[key] = copy.deepcopy(value)
    return whole


class ScheduleTuner(Tuner):
    """Runs a schedule again: one network, each trial a step that goes on from the one before.

    Trial ``n`` is step ``n``. When a step fails, the steps after it fail with it. Propose nothing
    by hand meanwhile: such a trial takes a step's number, and what follows it has no parent.

    Args:
        schedule: hyperparameters of the steps, in order, as :func:`schedule` returns them.
    """

    def __init__(self, schedule: Sequence[Mapping[str, Any]]) -> None:
        if not isinstance(schedule, list | tuple) or not schedule:
            raise TunerArgumentError(
                "schedule is a list of hyperparameters, one object a step.",
                "tuners.schedules.schedule makes one of a finished experiment.",
            )
        for step, hyperparameters in enumerate(schedule):
            if not isinstance(hyperparameters, Mapping):
                raise TunerArgumentError(f"step {step} of schedule is no object.")
        self.schedule = [dict(step) for step in schedule]
        self._ended: int | None = None  # the last step that ended well

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Returns a step's hyperparameters. Blocks until the one before it has ended.

        Raises:
            NoMoreTrialError: the schedule is at its end; or the step before has not ended and
                waiting is not allowed (``multiThread: false``).
            ParentFailed: the step before cannot pass its weights on.
        """
        if parameter_id >= len(self.schedule):
            raise NoMoreTrialError(f"all {len(self.schedule)} steps of the schedule were issued")
        parameters = copy.deepcopy(self.schedule[parameter_id])
        parameters["save_path"] = self.save_path(parameter_id)
        if parameter_id:
            self._await(parameter_id - 1)
            parameters["restore_path"] = self.save_path(parameter_id - 1)
        return parameters

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; learns nothing."""

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Notes how far the schedule has come, for requests that may not wait."""
        if success:
            with self.lock:
                self._ended = parameter_id

    def state(self) -> dict[str, Any]:
        """The last step that ended."""
        with self.lock:
            return {"ended": self._ended}

    def restore(self, state: Any) -> None:
        """Takes over what ``state`` returned."""
        with self.lock:
            self._ended = state["ended"]

    def _await(self, step: int) -> None:
        try:
            self.wait_for(step)
        except WaitNotAllowed as refused:
            with self.lock:
                if self._ended is None or self._ended < step:
                    raise NoMoreTrialError(
                        f"step {step} has not ended, and {refused.reason}"
                    ) from refused
