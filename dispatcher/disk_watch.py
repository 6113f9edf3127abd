"""Looks after the disks an experiment writes to, so that new trials pause before they are full.

A full disk costs more than what is being written: the journal cannot commit, trials die while
they save. What is kept in reserve is for those that run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dispatcher.core.events import DiskLow, DiskRecovered, Event
from dispatcher.errors import PassingBackendError

#: Seconds between two looks. A disk that takes 200 MB/s needs longer than this for the default
#: reserve, and a look costs some microseconds.
EVERY_S = 2.0

#: The reserve is never more than this part of a disk: a small one could hold no trial at all.
MOST_OF_A_DISK = 0.05

#: Room that must be free before trials start again, as a multiple of the reserve: at the mark
#: itself they would start and pause by turns.
RECOVERED_AT = 1.2


class FileSystem(Protocol):
    """What of ``os.statvfs_result`` is read."""

    @property
    def f_frsize(self) -> int:
        """Bytes of a block."""

    @property
    def f_blocks(self) -> int:
        """Blocks in all."""

    @property
    def f_bavail(self) -> int:
        """Blocks free for those who are not root."""


@dataclass(slots=True)
class Watermark:
    """One disk: when it is low, and when it no longer is. Pure.

    ``place`` is a folder on it, ``reserve_bytes`` what the file asks to be kept free.
    """

    place: str
    reserve_bytes: int
    low: bool = False

    def judge(self, disk: FileSystem) -> Event | None:
        """What changed, if something did. The caller says with :meth:`note` that it was told."""
        free = disk.f_bavail * disk.f_frsize
        needed = min(self.reserve_bytes, int(disk.f_blocks * disk.f_frsize * MOST_OF_A_DISK))
        if not self.low and free < needed:
            return DiskLow(self.place, free, needed)
        if self.low and free >= RECOVERED_AT * needed:
            return DiskRecovered(self.place, free)
        return None

    def note(self, event: Event) -> None:
        """The event is on its way to the core."""
        self.low = isinstance(event, DiskLow)


class DiskWatch(threading.Thread):
    """Tells of disks that run low, and of room again.

    A thread of its own, since a look at a network file system whose server is gone may take
    minutes, and the engine must not wait.

    Args:
        places: folders that are written to; those on one disk count once.
        reserve_bytes: room to keep free on each; 0 watches nothing.
        post: hands an event to the engine; from any thread. May raise ``PassingBackendError``.
        note: told in a sentence that a disk cannot be looked at.
        statvfs: as ``os.statvfs``.
        device_of: tells disks apart.
    """

    def __init__(
        self,
        places: Sequence[Path],
        reserve_bytes: int,
        post: Callable[[Event], None],
        note: Callable[[str], None],
        *,
        every_s: float = EVERY_S,
        statvfs: Callable[[str], FileSystem] = os.statvfs,
        device_of: Callable[[Path], int] = lambda place: os.stat(place).st_dev,
    ) -> None:
        super().__init__(name="disk-watch", daemon=True)
        self._post = post
        self._note = note
        self._every_s = every_s
        self._statvfs = statvfs
        self._over = threading.Event()
        first: dict[int | str, Path] = {}
        for place in places if reserve_bytes else ():
            try:
                first.setdefault(device_of(place), place)
            except OSError:
                first[str(place)] = place  # not there now, and perhaps later
        self._marks = [Watermark(str(place), reserve_bytes) for place in first.values()]
        self._unseen: set[str] = set()

    def look(self) -> None:
        """One look at each disk. What cannot be looked at stays what it was."""
        for mark in self._marks:
            try:
                disk = self._statvfs(mark.place)
            except OSError as error:
                if mark.place not in self._unseen:
                    self._unseen.add(mark.place)
                    self._note(f"cannot see how full the disk of {mark.place} is: {error.strerror}")
                continue
            self._unseen.discard(mark.place)
            event = mark.judge(disk)
            if event is None:
                continue
            try:
                self._post(event)
            except PassingBackendError:
                continue  # the engine is behind; the next look says it again
            mark.note(event)

    def run(self) -> None:
        """The thread."""
        while self._marks:
            self.look()
            if self._over.wait(self._every_s):
                return

    def close(self) -> None:
        """End the thread, unless it hangs in a look: it is a daemon, and holds nothing."""
        self._over.set()
        if self.is_alive():
            self.join(timeout=1.0)
