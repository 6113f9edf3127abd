"""Arguments of the Python API that no type checker has seen: what they must be, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dispatcher.errors import UserError

if TYPE_CHECKING:
    from dispatcher.experiments.handle import ExperimentHandle
    from dispatcher.queries import TrialFilter

#: What may be written instead.
_EXAMPLES = {
    "config": "give a file, Experiment('experiment.yml'), or keywords, "
    "Experiment(trial=train, tuner='TPE', search_space={...}, trial_concurrency=2)",
    "parameters": "write, for example, {'x': 0.5}",
    "tuner_args": "write, for example, tuner_args={'population_size': 20}",
}


def mapping(name: str, value: Any) -> dict[str, Any]:
    """Return a mapping with texts as keys; None is an empty one.

    Args:
        name: of the argument.
        value: what was given.

    Raises:
        UserError: it is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UserError(
            f"{name} must be a mapping, not {_kind(value)}", hint=_EXAMPLES.get(name, "")
        )
    wrong = [key for key in value if not isinstance(key, str)]
    if wrong:
        raise UserError(
            f"keys of {name} must be texts, and one is {wrong[0]!r}",
            hint=_EXAMPLES.get(name, ""),
        )
    return dict(value)


def required(name: str, value: Any) -> dict[str, Any]:
    """Return a mapping with texts as keys, which has to be given. Raises ``UserError``."""
    if value is None:
        raise UserError(f"{name} must be a mapping, not None", hint=_EXAMPLES.get(name, ""))
    return mapping(name, value)


def trial_filter(value: Any) -> TrialFilter | None:
    """Return a choice of trials; a text is a condition. Raises ``UserError``."""
    from dispatcher.queries import TrialFilter

    if value is None or isinstance(value, TrialFilter):
        return value
    if isinstance(value, str):
        return TrialFilter(condition=value)
    raise UserError(
        f"trials are chosen by a condition or a TrialFilter, not by {_kind(value)}",
        hint="write, for example, experiment.trials('value > 0.9')",
    )


def warn_of_doubts(handle: ExperimentHandle, chosen: TrialFilter | None) -> None:
    """Warn at the user's line of names in a condition that no trial has."""
    from dispatcher.notebook.spoken import warn
    from dispatcher.queries import doubts

    if chosen is not None and chosen.condition:
        with handle.reading() as reader:
            for sentence in doubts(reader, chosen.condition):
                warn(sentence)


def whole(name: str, value: Any, least: int = 0) -> int:
    """Return a whole number that is not below a bound. Raises ``UserError``.

    Args:
        name: of the argument.
        value: what was given.
        least: the bound.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise UserError(
            f"{name} must be a whole number from {least}, not {value!r}",
            hint=f"write, for example, {max(least, 5)}",
        )
    return int(value)


def function(name: str, value: Any) -> Any:
    """Return a function, or None. Raises ``UserError``."""
    if value is not None and not callable(value):
        raise UserError(
            f"{name} must be a function that takes a trial, not {_kind(value)}",
            hint=f"write, for example, {name}=lambda trial: print(trial.value)",
        )
    return value


def _kind(value: Any) -> str:
    """Name a value with its class, short."""
    text = repr(value)
    return f"{type(value).__name__} {text[:40]}{'…' * (len(text) > 40)}"
