"""When a disk counts as low, and when it no longer does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dispatcher.core.events import DiskLow, DiskRecovered, Event

#: The reserve is never more than this part of a disk: a small one could hold no trial at all.
MOST_OF_A_DISK = 0.05

#: Room that must be free before trials start again, as a multiple of the reserve: at the mark
#: itself they would start and pause by turns.
RECOVERED_AT = 1.2


class FileSystem(Protocol):
    """The fields of ``os.statvfs_result`` that are read."""

    @property
    def f_frsize(self) -> int:
        """Bytes of a block."""

    @property
    def f_blocks(self) -> int:
        """Blocks in all."""

    @property
    def f_bavail(self) -> int:
        """Blocks free for users that are not root."""


@dataclass(slots=True)
class Watermark:
    """The mark of one disk: decides when it is low, and when it no longer is. Pure.

    ``place`` is a folder on it, ``reserve_bytes`` what the file asks to be kept free.
    """

    place: str
    reserve_bytes: int
    low: bool = False

    def judge(self, disk: FileSystem) -> Event | None:
        """Return the change, if there is one. The caller confirms with :meth:`note` that it was
        posted."""
        free = disk.f_bavail * disk.f_frsize
        needed = min(self.reserve_bytes, int(disk.f_blocks * disk.f_frsize * MOST_OF_A_DISK))
        if not self.low and free < needed:
            return DiskLow(self.place, free, needed)
        if self.low and free >= RECOVERED_AT * needed:
            return DiskRecovered(self.place, free)
        return None

    def note(self, event: Event) -> None:
        """Note that the event is on its way to the core."""
        self.low = isinstance(event, DiskLow)
