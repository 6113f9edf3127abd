"""The platform: a section, and how its allocations are asked for, looked at and given back."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, ClassVar, Literal

import msgspec
from pydantic import Field

import dispatcher.platforms.protocol as bq


class QueueSection(bq.AllocationService):
    """Run trials in places of a queue on this machine."""

    platform: Literal["queue"]
    queue: Annotated[bq.ResolvedPath, Field(description="Folder of the queue.")]
    seats: Annotated[bq.Count, Field(description="Places that it gives at once.")] = 2
    wall_time: Annotated[bq.Duration, Field(description="When one is taken back.")] = 3600.0
    priority: Annotated[bq.CountOrZero, Field(description="Higher goes first.")] = 0
    wall_s = property(attrgetter("wall_time"))  # a file whose trials take longer is refused


class QueueAllocator(bq.Allocator):
    """The queue, for one service. What it says of a job is read as an ``Allocation``."""

    look_every_s = 0.25

    def __init__(self, given: bq.ServiceGiven[QueueSection]) -> None:
        self._label, self._section, self._queue = given.label, given.section, given.section.queue
        self._queue.mkdir(mode=0o700, parents=True, exist_ok=True)

    def submit(self, order: bq.AllocationOrder) -> None:
        """Put a job there, unless one of that name was there before; see that there is a queue."""
        config = self._queue / f"{order.name}.config"
        if not (self._queue / f"{order.name}.state").exists():
            job = {
                "argv": [sys.executable, *order.arguments, str(config)],
                "environment": {**os.environ, **order.environment},
                **self._section.model_dump(include={"wall_time", "priority"}),
                "since": time.time(),
            }
            bq.write_private(config, bq.encode_config(order.config))
            bq.write_private(self._queue / f"{order.name}.job", msgspec.json.encode(job))
        queue = [sys.executable, "-m", "bequeath_queue.queue", str(self._queue)]
        subprocess.Popen([*queue, str(self._section.seats)], start_new_session=True)

    def look(self) -> Sequence[bq.Allocation]:
        """Read what the queue says of all of them."""
        states = self._queue.glob(f"{self._label}-*.state")
        return [msgspec.json.decode(path.read_bytes(), type=bq.Allocation) for path in states]

    def tell(self, name: str, config: bq.AgentConfig) -> None:
        """Write the configuration anew, unless the job is over."""
        if (self._queue / f"{name}.job").exists():
            bq.write_private(self._queue / f"{name}.config", bq.encode_config(config))

    def cancel(self, names: Sequence[str], grace_s: float) -> None:
        """Ask the queue, which has a grace of its own."""
        for name in names:
            (self._queue / f"{name}.cancel").touch()


class QueuePlatform(bq.AllocationPlatform[QueueSection]):
    """What the entry point names. Its places are on this machine."""

    protocol = 2
    section = QueueSection
    reach: ClassVar[bq.Reach] = "socket"
    shares_folders = True
    allocator = QueueAllocator  # made of what its service is given

    def files(self, given: bq.Given[QueueSection], trial: int, attempt: int) -> bq.AttemptFiles:
        """Read them where they lie."""
        return bq.files_in(given, given.home, trial, attempt)


QUEUE = QueuePlatform()
