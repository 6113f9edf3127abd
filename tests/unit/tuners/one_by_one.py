"""A tuner in one thread: each trial ends before the next one is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any


def finish(tuner: Any, number: int, parameters: Any, value: Any, success: bool = True) -> None:
    """End a trial with its result; the parameters are as JSON gives them back."""
    tuner.receive_trial_result(number, json.loads(json.dumps(parameters)), value)
    tuner.trial_end(number, success)


def by_lr(number: int, parameters: Any) -> Any:
    return parameters["lr"]


def run(
    tuner: Any, numbers: Iterable[int], value: Callable[[int, Any], Any] = by_lr
) -> dict[int, Any]:
    """Ask for trials and end them; the parameters of each.

    Args:
        tuner: has its search space and a gate.
        numbers: of the trials.
        value: the result of a trial, from its number and parameters.
    """
    proposals = {}
    for number in numbers:
        proposals[number] = tuner.generate_parameters(number)
        finish(tuner, number, proposals[number], value(number, proposals[number]))
    return proposals
