"""A watch of the disks an experiment writes to, so that new trials pause before they are full.

A full disk costs more than what is being written: the journal cannot commit, trials die while
they save. The reserve is for trials that run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from dispatcher.core.events import Event
from dispatcher.errors import PassingBackendError
from dispatcher.wiring.watermark import FileSystem, Watermark

#: Seconds between two looks. A disk that takes 200 MB/s needs longer than this for the default
#: reserve, and a look costs some microseconds.
EVERY_S = 2.0


class DiskWatch(threading.Thread):
    """Posts an event for each disk that runs low, or has room again.

    A thread of its own, since a look at a network file system whose server is gone may take
    minutes, and the engine must not wait. Nor may the looks at other disks: each has a thread.

    Args:
        places: folders that are written to; those on one disk count once.
        reserve_bytes: room to keep free on each; 0 watches nothing.
        post: hands an event to the engine; from any thread. May raise ``PassingBackendError``.
        note: gets a sentence if a disk cannot be looked at.
        every_s: seconds between two looks.
        statvfs: as ``os.statvfs``.
        device_of: the number of a folder's disk.
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
        self._device_of = device_of
        self._reserve_bytes = reserve_bytes
        self._places = list(places) if reserve_bytes else []
        self._lock = threading.Lock()
        self._first: dict[int | str, Path] = {}  # of each disk, the folder that stands for it
        self._marks: dict[Path, Watermark] = {}
        self._unseen: set[str] = set()
        self._others: list[threading.Thread] = []

    def look(self) -> None:
        """Look at each disk once. A disk that cannot be looked at stays what it was."""
        for place in self._places:
            self._look_at(place)

    def _look_at(self, place: Path) -> bool:
        """Look once; false if another folder stands for the disk."""
        mark = self._marks.get(place) or self._mark_of(place)
        if mark is None:
            return False
        try:
            disk = self._statvfs(mark.place)
        except OSError as error:
            if mark.place not in self._unseen:
                self._unseen.add(mark.place)
                self._note(f"cannot see how full the disk of {mark.place} is: {error.strerror}")
            return True
        self._unseen.discard(mark.place)
        event = mark.judge(disk)
        if event is None:
            return True
        try:
            self._post(event)
        except PassingBackendError:
            return True  # the engine is behind; the next look posts it again
        mark.note(event)
        return True

    def _mark_of(self, place: Path) -> Watermark | None:
        device: int | str
        try:
            device = self._device_of(place)
        except OSError:
            device = str(place)  # not there now, and perhaps later
        with self._lock:
            if self._first.setdefault(device, place) != place:
                return None
            return self._marks.setdefault(place, Watermark(str(place), self._reserve_bytes))

    def _watch(self, place: Path) -> None:
        while self._look_at(place) and not self._over.wait(self._every_s):
            pass

    def run(self) -> None:
        """Run the thread."""
        if not self._places:
            return
        first, *others = self._places
        self._look_at(first)  # so that it stands for its disk
        for place in others:
            name = f"disk-watch-{len(self._others) + 1}"
            thread = threading.Thread(target=self._watch, args=(place,), name=name, daemon=True)
            self._others.append(thread)
            thread.start()
        if not self._over.wait(self._every_s):
            self._watch(first)

    def close(self) -> None:
        """End the threads, unless they hang in a look: they are daemons, and hold nothing."""
        self._over.set()
        if self.is_alive():
            self.join(timeout=1.0)
        for thread in self._others:
            thread.join(timeout=1.0)
