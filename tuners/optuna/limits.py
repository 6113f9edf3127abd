"""Limits of Optuna's samplers: spaces, objectives and bounds that they cannot search by."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from tuners.errors import TunerArgumentError
from tuners.optuna import mapping
from tuners.optuna.library import sampler_class
from tuners.pareto import Objectives
from tuners.space.model import Choice, RandInt, SpaceError

#: The name under which a sampler finds how far a trial is beyond its bounds.
BEYOND = "bequeath:beyond"

#: Samplers that take one objective only.
_ONE_OBJECTIVE = ("CmaEsSampler",)

#: Samplers that make a list of all values of a parameter that has steps, and the longest one: ten
#: million take half a gigabyte.
_LISTS: Mapping[str, str] = {"GPSampler": "GP"}
MOST_LISTED = 10_000_000

#: The argument of samplers that take bounds.
_TAKES_BOUNDS = "constraints_func"


def beyond_of(trial: Any) -> list[float]:
    """How far a trial of Optuna's is beyond each bound, as its samplers ask for it."""
    found: list[float] = trial.user_attrs[BEYOND]
    return found


def check_objectives(sampler: str, objectives: Objectives) -> None:
    """Checks that a sampler can search by these objectives and within their bounds.

    Raises:
        TunerArgumentError: it cannot.
    """
    if len(objectives.modes) > 1 and sampler in _ONE_OBJECTIVE:
        raise TunerArgumentError(
            f"{sampler} searches by one objective, and there are {len(objectives.modes)}.",
            "Take TPE, NSGA-II, NSGA-III or GP.",
        )
    if (
        objectives.bounded
        and _TAKES_BOUNDS not in inspect.signature(sampler_class(sampler)).parameters
    ):
        name = objectives.bounded[0].name
        raise TunerArgumentError(
            f"{sampler} knows no bounds, and the objective {name!r} has one.",
            "Take TPE, NSGA-II, NSGA-III or GP, or leave the bound out.",
        )


def unfit(sampler: str, axes: tuple[mapping.OptunaAxis, ...]) -> str:
    """The reason why a sampler cannot search a space; empty if it can.

    Args:
        sampler: its class.
        axes: of the space.
    """
    if not axes:
        return "the search space is empty, and a sampler has nothing to ask for."
    numbers = [axis for axis in axes if not isinstance(axis.dimension, Choice)]
    if sampler == "CmaEsSampler" and len(numbers) < 2:
        return (
            "CMA-ES needs two numbers or more that every trial has, and this search space has "
            f"{len(numbers)}: choices, and what lies below them, are drawn at random."
        )
    if sampler == "GridSampler":
        return (
            "GridSampler wants the whole grid as an argument and cannot take a search space; "
            "the tuner GridSearch can."
        )
    endless = [axis for axis in mapping.every(axes) if _is_endless(axis)]
    if sampler == "BruteForceSampler" and endless:
        return f"BruteForceSampler needs parameters to enumerate, and {endless[0].name!r} is none."
    refusal = too_long(sampler, axes)
    return "" if refusal is None else refusal.sentence


def searchable(sampler: str, axis: mapping.OptunaAxis) -> mapping.OptunaAxis:
    """Returns a parameter that is suggested by itself, if a sampler can search it.

    Raises:
        SpaceError: it cannot.
    """
    refusal = too_long(sampler, (axis,))
    if refusal is not None:
        raise refusal
    return axis


def too_long(sampler: str, axes: tuple[mapping.OptunaAxis, ...]) -> SpaceError | None:
    """The error for a parameter with more values than a sampler can list."""
    if sampler not in _LISTS:
        return None
    for axis in mapping.every(axes):
        if (count := axis.count) > MOST_LISTED:
            text = f"{_LISTS[sampler]} lists all values of {axis.name}, and there are {count:,}"
            return SpaceError((), text, "take a float and round it, larger steps, or TPE")
    return None


def _is_endless(axis: mapping.OptunaAxis) -> bool:
    return not isinstance(axis.dimension, Choice | RandInt) and not axis.is_stepped
