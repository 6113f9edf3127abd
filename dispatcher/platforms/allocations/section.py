"""The section of a service whose workers are allocations: how many there are, and for how long."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from dispatcher.experiment.fields import (
    Count,
    CountOrZero,
    Duration,
    ResolvedPath,
    Section,
    Size,
    Switch,
    Text,
    choice_reader,
)
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.service import PlannedWorker, ServiceConfig, distinct_names
from dispatcher.platforms.allocations.allocation import Bounds
from tuners.plain_json import kind_of

#: Most allocations of a service: each is a worker, which every look at the experiment walks over.
MOST_ALLOCATIONS = 9_999


def _check_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"must be one line of plain characters, not {text!r}")
    return text


def _check_path(path: Path) -> Path:
    _check_line(str(path))
    return path


def _check_memory(size: int) -> int:
    if size < 1 << 20:
        raise ValueError(f"is less than 1 MiB: {size} bytes; write the unit, such as '{size}GB'")
    return size


def _check_unit(value: object, info: ValidationInfo) -> object:
    # Records of experiments are read without a context: they hold seconds.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if (number or str(value).strip().isdecimal()) and info.context is not None:
        text = "must have a unit: schedulers count minutes, and a number alone would be seconds"
        raise ValueError(f"{text}; write '{value}m' or '{value}s'")
    return value


WallTime = Annotated[Duration, BeforeValidator(_check_unit)]
"""How long a scheduler lends a place."""

Line = Annotated[Text, AfterValidator(_check_line)]
"""A text that is one argument of a command."""

PlaceMemory = Annotated[Size, AfterValidator(_check_memory)]
"""Memory of an allocation: a number alone is bytes, which nobody means."""


SharedPath = Annotated[ResolvedPath, AfterValidator(_check_path)]
"""A folder of this machine that allocations have as well."""

BringCode = Annotated[
    Switch,
    Field(
        description="Send the code and bequeath's runtime, once for each version, so that agents "
        "need neither where they run; each trial begins in a folder of its own then."
    ),
]
"""Whether code is brought to allocations."""


class Allocations(Section):
    """How many allocations a service holds, and for how long."""

    min: Annotated[CountOrZero, Field(description="Allocations that are held at all times.")] = 1
    max: Annotated[
        Count,
        Field(
            le=MOST_ALLOCATIONS,
            description="Allocations at most: more than `min` while trials are queued.",
        ),
    ] = 1
    idle: Annotated[
        Duration | None,
        Field(
            description="How long one more than `min` is kept when nothing runs there; for ever if "
            "not given."
        ),
    ] = None
    limit: Annotated[
        Duration | None,
        Field(
            description="How long one may wait for its place, counted from its order, before it "
            "counts as one that will never be had; for ever if not given."
        ),
    ] = None

    trials: Annotated[
        Count | None,
        Field(
            description="Trials that may begin in one: `1` gives each an allocation of its own; "
            "any number if not given."
        ),
    ] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``4`` for four of them at all times."""
        if isinstance(value, int) and not isinstance(value, bool):
            return {"min": value, "max": value}
        if value is not None and not isinstance(value, Mapping | cls):
            text = "must be a number, or a section such as {min: 0, max: 4}, not"
            raise ValueError(f"{text} {kind_of(value)}")
        return value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min > self.max:
            raise Misfit(
                f"has the 'min' {self.min}, which is more than its 'max', {self.max}",
                at=("min",),
                hint=f"write '{{min: {self.min}, max: {self.min}}}', or {self.min} for short",
            )
        return self

    @property
    def bounds(self) -> Bounds:
        """The bounds of the service's pool."""
        idle, limit = self.idle, self.limit
        return Bounds(
            self.min,
            self.max,
            math.inf if idle is None else idle,
            math.inf if limit is None else limit,
        )


class AllocationService(ServiceConfig):
    """Run trials in allocations of a scheduler."""

    allocations: Annotated[
        Allocations,
        Field(description="How many to hold, and for how long; `4` means four at all times."),
    ] = Allocations()
    channel: Annotated[
        Annotated[
            Literal["auto", "direct", "tunnel", "folder"],
            BeforeValidator(choice_reader("auto", "direct", "tunnel", "folder")),
        ],
        Field(
            description="How agents reach the head: `direct`, by a connection to its port; "
            "`tunnel`, by one through the machine that `jump` names; `folder`, through files of a "
            "folder that they share with this machine; `auto`, by the first of these that there "
            "may be and that gets an answer."
        ),
    ] = "auto"
    shared_folder: Annotated[
        SharedPath | None,
        Field(
            description="A folder that this machine and the allocations have at the same path: "
            "keys of agents, logs, working directories and the channel `folder` lie below it. The "
            "experiment's own folder if not given, which they must see then."
        ),
    ] = None

    def homes(self, experiment: str, folder: Path) -> Path:
        """The folder with one for each worker, as this machine and the agents see it.

        Args:
            experiment: its id.
            folder: the experiment's own on this machine.
        """
        shared = self.shared_folder
        return folder / "agents" if shared is None else shared / "bequeath" / experiment

    @property
    def trials_per_place(self) -> int:
        """See :attr:`ServiceConfig.trials_per_place`."""
        return self.allocations.trials or 0

    def planned(self, usual: int, taken: Collection[str]) -> tuple[PlannedWorker, ...]:
        """A worker for each allocation that there may be, named after the platform."""
        held = self.allocations
        word = str(getattr(self, "platform", "worker"))
        slots = min(self.slots or usual, held.trials or self.slots or usual)
        return tuple(
            PlannedWorker(name, slots, self, elastic=number >= held.min)
            for number, name in enumerate(distinct_names([word] * held.max, taken))
        )
