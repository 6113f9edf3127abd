"""The key ``objectives``: the numbers of a result that a search is about, and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from dispatcher.experiment.fields import Text
from dispatcher.experiment.problems import Misfit
from tuners.objectives import (
    EXAMPLES,
    MOST_OBJECTIVES,
    known_objectives,
    name_fault,
    read_objective,
    written_objectives,
)
from tuners.values import OptimizeMode

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys

_PATTERN = r"^\s*([a-zA-Z]+\s*)?([<>]=\s*[-+0-9.eE]+\s*)?$"


def _read(value: object) -> str:
    try:
        return read_objective("", value).text
    except ValueError as error:
        raise Misfit(str(error), hint=EXAMPLES) from None


def _check_name(name: str) -> str:
    fault = name_fault(name)
    if fault:
        raise ValueError(fault)
    return name


ObjectiveText = Annotated[
    str,
    PlainValidator(_read),
    WithJsonSchema(
        {"type": "string", "pattern": _PATTERN, "examples": ["maximize", "minimize <= 4096"]}
    ),
]
Objectives = Annotated[
    dict[Annotated[Text, AfterValidator(_check_name)], ObjectiveText],
    Field(
        max_length=MOST_OBJECTIVES,
        description="Numbers of the final result by name, each with its direction, a bound, or "
        "both: `{default: maximize, size: minimize <= 4096, memory_gb: <= 8}`. A trial whose "
        "result lacks one has failed. See [objectives](objectives.md).",
    ),
]


def check_objectives(config: AllKeys) -> None:
    """Look whether the objectives fit the other keys. Raises ``Misfit``."""
    known = known_objectives(config.objectives)
    if not known:
        return
    if not any(one.mode for one in known):
        raise Misfit(
            "'objectives' has bounds only",
            at=("objectives",),
            hint="give one of them a direction, as in 'default: maximize'",
        )
    given = config.tuner.class_args.get("objectives")
    if config.tuner.builtin and given is not None and known_objectives(given) != known:
        raise Misfit(
            "'objectives' differs from the argument of that name in 'tuner.classArgs'",
            at=("objectives",),
            hint="keep 'objectives', and leave the argument out",
        )
    beside = [one.name for one in known if one.name != "default"]
    if beside and isinstance(config.on_trial_without_result, float):
        raise Misfit(
            f"'onTrialWithoutResult' is one number, and a result needs {beside[0]!r} as well "
            "('objectives')",
            at=("onTrialWithoutResult",),
            hint="write 'fail' or 'ignore'",
        )
    _check_metrics(config, beside)


def _check_metrics(config: AllKeys, beside: list[str]) -> None:
    """Look whether a program that imports nothing of ours has results with these numbers."""
    if config.metrics is None:
        return
    for name in beside:
        if name not in config.metrics.also:
            own = name == config.metrics.objective
            raise Misfit(
                f"'objectives' names {name!r}, which is "
                + ("called 'default' in results" if own else "none of 'metrics.also'"),
                at=("objectives", name),
                hint="write 'default'" if own else "add it to 'metrics.also'",
            )


def settled_objectives(config: AllKeys) -> Mapping[str, str]:
    """Return the objectives of the experiment: its own, or those that a built-in tuner's arguments
    name, unless these contradict ``optimizeMode``."""
    arguments = config.tuner.class_args if config.tuner.builtin else None
    found = {one.name: one.text for one in written_objectives(config.objectives, arguments)}
    contradicts = {mode_of_default(found), config.optimize_mode} >= {"maximize", "minimize"}
    return config.objectives if contradicts else found


def mode_of_default(objectives: Mapping[str, str]) -> OptimizeMode | None:
    """Return the direction of ``default``; None if it is no objective, or has none."""
    known = known_objectives(objectives)
    return next((one.mode for one in known if one.name == "default"), None)
