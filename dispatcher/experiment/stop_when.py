"""The section ``stopWhen``: what ends a search before its number of trials or its time do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, Strict

from dispatcher.experiment.fields import Count, Duration, Section, Text
from dispatcher.experiment.objectives import settled_objectives
from dispatcher.experiment.problems import Misfit
from tuners.objectives import directions_of, known_objectives
from tuners.values import OptimizeMode

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys

Number = Annotated[float, Strict()]


class NoProgressConfig(Section):
    """A search that gets no better. A number in place of the section is its `trials`."""

    short_schema: ClassVar[Mapping[str, Any] | None] = {"type": "integer", "minimum": 1}

    trials: Annotated[
        Count,
        Field(description="Trials with a result, one after another, of which none is better."),
    ]
    least_improvement: Annotated[
        Annotated[Number, Field(ge=0)],
        Field(description="How much better a result must be than the last one that counted."),
    ] = 0.0

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``50`` as ``{trials: 50}``."""
        return value if value is None or isinstance(value, dict) else {"trials": value}


class StopWhenConfig(Section):
    """The ends that a search may earn: see [ends](ends.md).

    The first one that is there counts: no further trial is begun, what runs may finish, and the
    experiment is completed.
    """

    objective: Annotated[
        Text | None,
        Field(
            description="Number of the final result that `target` and `noProgress` look at, if "
            "there are several `objectives`; else it is the one of the search.",
            json_schema_extra={"examples": ["size"]},
        ),
    ] = None
    target: Annotated[
        Number | None,
        Field(
            description="Result that is good enough, by the direction of its objective; of several "
            "metrics `default` counts."
        ),
    ] = None
    no_progress: Annotated[
        NoProgressConfig | None,
        Field(description="After how many trials without a better result: a number, or a section."),
    ] = None
    trial_time: Annotated[
        Duration | None,
        Field(
            description="Time that all attempts of trials may take together, of those that run, "
            "too: `12h` are three hours of four slots."
        ),
    ] = None


def check_ends(config: AllKeys) -> None:
    """Look whether it is known which objective the ends look at. Raises ``Misfit``."""
    ends, searched = config.stop_when, [*_searched(config)]
    key = "target" if ends.target is not None else "noProgress"
    if ends.target is None and ends.no_progress is None:
        return
    if ends.objective is None and len(searched) > 1:
        raise Misfit(
            f"'stopWhen.{key}' looks at one objective, and there are {', '.join(searched)}",
            at=("stopWhen", key),
            hint=f"name it: {{objective: {searched[-1]}, {key}: …}}",
        )
    if ends.objective is not None and ends.objective not in (searched or ["default"]):
        raise Misfit(
            f"'stopWhen.objective' is {ends.objective[:200]!r}, which is no objective with a "
            "direction",
            at=("stopWhen", "objective"),
            hint=f"write one of {', '.join(searched or ['default'])}",
        )


def end_objective(config: AllKeys) -> tuple[str, OptimizeMode]:
    """Return the number of a result that the ends look at, and which way it is better."""
    searched = _searched(config)
    name = config.stop_when.objective or (next(iter(searched)) if len(searched) == 1 else "default")
    return name, searched.get(name) or config.optimize_mode or "maximize"


def _searched(config: AllKeys) -> dict[str, OptimizeMode]:
    return directions_of(known_objectives(settled_objectives(config)))
