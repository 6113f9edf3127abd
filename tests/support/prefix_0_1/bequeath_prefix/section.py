"""What stands below ``trainingService`` with ``platform: prefix``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import Field

from dispatcher.platforms.protocol import (
    Count,
    Misfit,
    OfferedResources,
    PlannedWorker,
    ServiceConfig,
    Text,
    distinct_names,
)


class PlaceSection(OfferedResources):
    """One place. What `cost`, `storageDomain` and the like say of it alone is inherited."""

    name: Annotated[Text, Field(description="What its worker is called.")]
    prefix: Annotated[
        tuple[Text, ...],
        Field(description="The words that stand in front of a program to start it there."),
    ]
    python: Annotated[Text, Field(description="Python there, with what bequeath needs.")] = (
        "python3"
    )
    slots: Annotated[Count | None, Field(description="Trials it may run at once.")] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``nice -n 10`` for a place that needs no more said."""
        if isinstance(value, str):
            return {"name": value.split()[0] if value.split() else "", "prefix": value.split()}
        return value


class PrefixSection(ServiceConfig):
    """Run trials behind commands of yours."""

    platform: Literal["prefix"]
    places: Annotated[tuple[PlaceSection, ...], Field(description="A worker for each.")]

    def planned(self, usual: int, taken: Collection[str]) -> tuple[PlannedWorker, ...]:
        """A worker for each place."""
        if not self.places:
            raise Misfit("names no place", at=("places",), hint="write '- {name: …, prefix: […]}'")
        names = distinct_names([place.name for place in self.places], taken)
        slots = self.slots or usual
        return tuple(
            PlannedWorker(name, place.slots or slots, place)
            for name, place in zip(names, self.places, strict=True)
        )
