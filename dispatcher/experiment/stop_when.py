"""The section ``stopWhen``: what ends a search before its number of trials or its time do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, Strict

from dispatcher.experiment.fields import Count, Duration, Section

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

    target: Annotated[
        Number | None,
        Field(
            description="Result that is good enough, by `optimizeMode`; of several metrics "
            "`default` counts."
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
