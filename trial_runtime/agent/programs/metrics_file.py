"""A file that a program writes, read as it grows.

The program may begin it anew (``hypertune`` writes all of its file at each report), cut it off, or
put another one in its place, and may do so while it is read. The trial's code may put anything
there, and the agent's loop reads it: only a regular file is opened, a bounded part at a time.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from trial_runtime.opening import open_regular

#: So many of the bytes before a place are compared, to see whether they are still there.
_COMPARED = 64

#: Lines that are remembered of a file which is written anew; hypertune keeps a hundred.
_REMEMBERED = 512


class FilePart(NamedTuple):
    """New bytes of a file. ``anew``: they are its first ones, whatever was read before."""

    content: bytes
    anew: bool = False


class MetricsFile:
    """A file by its path, whether it is there or not; the one that was open is read to its end.

    Args:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._offset = 0
        self._before = b""  # the last bytes that were read
        self._anew = False  # the next ones are the first of the file once more

    def read(self, most: int) -> FilePart:
        """The next bytes, at most so many; none if there are none now."""
        if self._descriptor < 0:
            self._descriptor = self._opened()
        if self._descriptor < 0:
            return FilePart(b"")  # it is not there yet
        try:
            content = self._next(most)
            if not content and self._is_another():
                content = self._next(most)
        except OSError:  # of a share whose server has lost it
            self.close()
            self._begin()
            return FilePart(b"")
        anew = self._anew and bool(content)
        self._anew = self._anew and not content
        return FilePart(content, anew)

    def skip(self, last: int) -> int:
        """Pass over all but the last bytes of the file; returns how many those are."""
        try:
            size = os.fstat(self._descriptor).st_size
        except OSError:
            return 0
        passed = max(0, size - last - self._offset)
        if passed:
            self._offset, self._before = self._offset + passed, b""
        return passed

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _next(self, most: int) -> bytes:
        if self._has_begun_anew():
            self._begin()
        content = os.pread(self._descriptor, most, self._offset)
        self._offset += len(content)
        self._before = (self._before + content)[-_COMPARED:]
        return content

    def _begin(self) -> None:
        self._offset, self._before, self._anew = 0, b"", True

    def _has_begun_anew(self) -> bool:
        """Whether the bytes that were read last are not there any more."""
        if os.fstat(self._descriptor).st_size < self._offset:
            return True
        start = self._offset - len(self._before)
        return os.pread(self._descriptor, len(self._before), start) != self._before

    def _is_another(self) -> bool:
        """Whether another file stands in the place of the one that is open; it is opened then."""
        other = self._opened()
        if other < 0:
            return False  # it is gone: what is open may still grow
        if os.path.sameopenfile(other, self._descriptor):
            os.close(other)
            return False
        self.close()
        self._descriptor = other
        self._begin()
        return True

    def _opened(self) -> int:
        try:
            return open_regular(self._path, os.O_RDONLY)
        except OSError:
            return -1


class RewrittenLines:
    """Separates new lines of a file that is written anew from those that were there before.

    While it is being written its first lines are there alone; they are known, and waited with.
    """

    def __init__(self) -> None:
        self._known: deque[int] = deque(maxlen=_REMEMBERED)
        self._again: list[int] | None = None  # lines since the file began anew

    def begin_anew(self) -> None:
        """Note that the lines to come are the first ones of the file."""
        self._again = []

    def new_of(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """The lines among these that come after all that were there before."""
        hashes = [hash(line) for line in lines]
        if self._again is None:
            self._known.extend(hashes)
            return lines
        self._again += hashes
        known = list(self._known)
        many, waits = _known_part(known, self._again)
        if waits:
            return ()
        new = len(self._again) - many
        self._again = None
        if not new:
            return ()
        self._known.extend(hashes[-new:])
        return lines[-new:]  # what was waited with is known


def _known_part(known: Sequence[int], again: Sequence[int]) -> tuple[int, bool]:
    """How many of the lines are the known ones, and whether more of those are to come.

    >>> _known_part([1, 2, 3], [2, 3, 4]), _known_part([1, 2, 3], [1, 2]), _known_part([1], [5])
    ((2, False), (2, True), (0, False))
    """
    if not again:
        return 0, True
    for start in range(len(known)):
        many = min(len(again), len(known) - start)
        if list(known[start : start + many]) == list(again[:many]):
            return many, start + many < len(known)
    return 0, False
