"""The section of a service whose workers are allocations: how many there are, and for how long."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from dispatcher.experiment.fields import Count, CountOrZero, Duration, Section
from dispatcher.experiment.planned import PlannedWorker, distinct_names
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.service import ServiceConfig
from dispatcher.platforms.allocations.allocation import Bounds


class Allocations(Section):
    """How many allocations a service holds, and for how long."""

    min: Annotated[CountOrZero, Field(description="Allocations that are held at all times.")] = 1
    max: Annotated[
        Count, Field(description="Allocations at most: more than `min` while trials are queued.")
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
            description="How long one may wait in the queue before it counts as one that will "
            "never be had; for ever if not given."
        ),
    ] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``4`` for four of them at all times."""
        whole = isinstance(value, int) and not isinstance(value, bool)
        return {"min": value, "max": value} if whole else value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min > self.max:
            raise Misfit(f"is {self.min}, more than 'max', {self.max}", at=("min",))
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

    def planned(self, usual: int, taken: Collection[str]) -> tuple[PlannedWorker, ...]:
        """A worker for each allocation that there may be, named after the platform."""
        held = self.allocations
        word = str(getattr(self, "platform", "worker"))
        return tuple(
            PlannedWorker(name, self.slots or usual, self, elastic=number >= held.min)
            for number, name in enumerate(distinct_names([word] * held.max, taken))
        )
