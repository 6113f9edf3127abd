"""The training service ``local``: trials as processes of this machine."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import Field

from dispatcher.experiment.fields import Section
from dispatcher.experiment.planned import LOCAL, PlannedWorker
from dispatcher.experiment.plugged import section_of
from dispatcher.experiment.service import ServiceConfig, is_remote


class LocalServiceConfig(ServiceConfig):
    """Run trials on this machine, below an agent process of the experiment."""

    platform: Annotated[Literal["local"], Field(description="Where trials run: `local`.")] = "local"

    @classmethod
    def meant(cls, value: Any) -> type[Section] | None:
        """This class, unless the file names another platform."""
        if is_remote(value):
            return None
        return section_of(value) or cls

    def planned(self, usual: int, taken: Collection[str]) -> tuple[PlannedWorker, ...]:
        """The one worker of this machine."""
        return (
            PlannedWorker(LOCAL, self.slots or usual, self, slots_given=self.slots is not None),
        )
