"""The training service ``local``: trials as processes of this machine."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field

from dispatcher.experiment.service import LOCAL, PlannedWorker, ServiceConfig


class LocalServiceConfig(ServiceConfig):
    """Run trials on this machine, below an agent process of the experiment."""

    platform: Annotated[
        Literal["local"], Field(description="Kind of place where trials run: `local`.")
    ] = "local"

    def planned(self, usual: int, taken: Collection[str]) -> tuple[PlannedWorker, ...]:
        """The one worker of this machine."""
        return (
            PlannedWorker(LOCAL, self.slots or usual, self, slots_given=self.slots is not None),
        )
