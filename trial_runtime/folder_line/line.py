"""One end of a line through a folder: numbered files, each announced by a bell.

The folder holds ``up.bell`` and ``down.bell`` (up is from the agent to the head) and files of
frames. A bell says which life its end has, with which life of the other end it speaks, up to which
number it has written files and up to which it has read those of the other. The writer removes what
was read. Two lives are a connection: an end that begins anew, or finds that files of the other end
are missing, draws a new life, and what was under way is lost, as it is with any connection that
breaks. Nothing here compares times of two machines.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Optional

from trial_runtime.folder_line.sealed import (
    BELL_BYTES,
    LARGEST_FILE,
    NOBODY,
    Bell,
    key_of,
    pack_batch,
    pack_bell,
    unpack_batch,
    unpack_bell,
)
from trial_runtime.opening import create_private, open_regular
from trial_runtime.refusals import Refusals
from trial_runtime.retry import growing_pause

#: What waits to be read by the other end, before :meth:`FolderLine.send` returns false.
MOST_FILES = 64
MOST_WAITING_BYTES = 16 << 20

#: A file that was announced and is not there, or cannot be read, is waited for so long (seconds).
GAP_S = 10.0

#: A bell is written anew after so long (seconds): somebody may have removed it with its folder.
RING_AGAIN_S = 5.0

#: An end whose peer has gone over to another end lets some time pass before it tries again
#: (seconds): it is the one before, as a rule, and leaves.
FIRST_YIELD_S, LONGEST_YIELD_S = 2.0, 60.0

#: An end with which the other one does not speak draws a new life after so long (seconds). It may
#: be a former one to the other by now, which went over to another end before it was seen here.
UNHEARD_S = 60.0

#: Former lives of the other end that are known: a bell of theirs is old.
_FORMER = 64

_DIRECTIONS = {"up": "down", "down": "up"}

_log = logging.getLogger("bequeath.line")


def lay_out(folder: Path) -> None:
    """Make the folder of a line with its bells, if they are not there.

    By the head, before an agent looks: a name that was looked for in vain may stay unseen for half
    a minute on a network file system. Raises ``OSError``.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for direction in _DIRECTIONS:
        os.close(open_regular(str(folder / f"{direction}.bell"), os.O_WRONLY | os.O_CREAT, 0o600))


class FolderLine:
    """One end. Blocks for the file system; one thread.

    Args:
        folder: of the line, as this machine has it.
        direction: in which it writes: ``up`` for an agent, ``down`` for the head.
        secret: known to both ends, and to nobody else.
        makes: whether it makes the folder, again if it was removed.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        folder: Path,
        direction: str,
        secret: str,
        *,
        makes: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.refused = Refusals()
        self._folder = folder
        self._ours, self._theirs = direction, _DIRECTIONS[direction]
        self._key, self._their_key = key_of(secret, self._ours), key_of(secret, self._theirs)
        self._clock = clock
        self._makes = makes
        self._is_there = not makes
        self._peer = NOBODY
        self._former: deque[bytes] = deque(maxlen=_FORMER)
        self._yields = 0
        self._troubles: dict[str, str] = {}  # of the file system, by what could not be done
        self._silent_until = float("-inf")
        self._begin()

    def _begin(self) -> None:
        """Begin a connection, with whatever end is there."""
        self._life = os.urandom(8)
        self._reset()

    def _reset(self) -> None:
        self._newest = self._read = 0
        self._sizes: deque[tuple[int, int]] = deque()  # numbers and bytes that wait to be read
        self._is_heard = False  # whether the other end has spoken with this life of ours
        self._unheard_since: Optional[float] = None
        self._gap_since: Optional[float] = None
        self._swept = False
        self._rung: Optional[Bell] = None
        self._rung_at = float("-inf")

    # -- what is asked of it -------------------------------------------------------------------

    @property
    def peer(self) -> bytes:
        """The life of the other end; ``NOBODY`` while none was seen."""
        return self._peer

    @property
    def is_heard(self) -> bool:
        """Whether the other end has seen this one."""
        return self._is_heard

    @property
    def takes(self) -> bool:
        """Whether :meth:`send` has room: there is somebody, and it reads."""
        waiting = sum(size for _, size in self._sizes)
        there = self._peer != NOBODY and self._clock() >= self._silent_until
        return there and len(self._sizes) < MOST_FILES and waiting < MOST_WAITING_BYTES

    def look(self) -> list[bytes]:
        """The frames that have come, in order; rings if there is news for the other end."""
        frames: list[bytes] = []
        if self._clock() < self._silent_until:
            return frames
        try:
            if not self._is_there:
                lay_out(self._folder)
                self._is_there, self._rung = True, None
            bell = self._their_bell()
            if bell is not None:
                frames = self._take(bell)
            if self._clock() >= self._silent_until:
                self._ring()
        except OSError as error:
            self._fails("looked at", error)
        else:
            self._troubles.pop("looked at", None)
        return frames

    def remove(self) -> None:
        """Remove the folder with all that is in it; no end may look any more."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def send(self, frames: Sequence[bytes]) -> bool:
        """Write frames as one file; false, and nothing is sent, if they cannot go now."""
        if not self.takes:
            return False
        bell = Bell(self._life, self._peer, self._newest + 1, self._read)
        content = pack_batch(bell, frames, self._key)
        name = self._name(self._ours, bell)
        try:
            self._sweep()
            write_whole(create_private(name), content)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(name)
            self._fails("written to", error)
            return False
        self._troubles.pop("written to", None)
        self._newest += 1
        self._sizes.append((self._newest, len(content)))
        try:
            self._ring()
        except OSError as error:  # the next look rings
            self._fails("looked at", error)
        return True

    # -- the other end -------------------------------------------------------------------------

    def _their_bell(self) -> Optional[Bell]:
        path = str(self._folder / f"{self._theirs}.bell")
        content = contents_of(path, BELL_BYTES, fresh=True)
        if not content:
            return None  # nobody has rung yet
        bell = unpack_bell(content, self._their_key)
        if bell is None:
            self.refused.count("bells")
            return None
        return None if bell.life in self._former else bell

    def _take(self, bell: Bell) -> list[bytes]:
        if bell.life != self._peer:
            if self._peer != NOBODY:
                self._former.append(self._peer)
            self._peer = bell.life
            self._reset()
        if bell.peer != self._life:
            self._is_passed_over()
            return []
        if not self._is_heard:
            self._is_heard, self._yields = True, 0
        self._forget_read(bell.read)
        return self._read_up_to(bell)

    def _is_passed_over(self) -> None:
        """The other end speaks with another one, or does not know us yet."""
        now = self._clock()
        if self._is_heard:
            self._give_way()
        elif self._unheard_since is None:
            self._unheard_since = now
        elif now - self._unheard_since >= UNHEARD_S:
            self._begin()

    def _give_way(self) -> None:
        """Another end of our kind speaks with the peer now."""
        self._yields += 1
        self._silent_until = self._clock() + growing_pause(
            self._yields, FIRST_YIELD_S, LONGEST_YIELD_S
        )
        self._begin()
        self.refused.count("taken over")

    def _forget_read(self, read: int) -> None:
        while self._sizes and self._sizes[0][0] <= read:
            number, _ = self._sizes.popleft()
            bell = Bell(self._life, self._peer, number)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._name(self._ours, bell))

    def _read_up_to(self, bell: Bell) -> list[bytes]:
        frames: list[bytes] = []
        while self._read < bell.newest:
            wanted = bell._replace(newest=self._read + 1)
            batch = self._batch(wanted)
            if batch is None:
                self._misses()
                break
            self._gap_since = None
            self._read += 1
            frames += batch
        return frames

    def _batch(self, wanted: Bell) -> Optional[list[bytes]]:
        try:
            content = contents_of(self._name(self._theirs, wanted), LARGEST_FILE)
        except OSError:
            return None
        return unpack_batch(content, wanted, self._their_key)

    def _misses(self) -> None:
        """An announced file is not there, or not what was announced: wait, then begin anew."""
        now = self._clock()
        if self._gap_since is None:
            self._gap_since = now
        elif now - self._gap_since >= GAP_S:
            self.refused.count("files")
            _log.warning("%s: a file that was announced is not there", self._folder)
            self._begin()

    # -- our own files -------------------------------------------------------------------------

    def _name(self, direction: str, bell: Bell) -> str:
        lives = f"{bell.life.hex()}-{bell.peer.hex()}"
        return str(self._folder / f"{direction}-{lives}-{bell.newest}")

    def _ring(self) -> None:
        bell = Bell(self._life, self._peer, self._newest, self._read)
        now = self._clock()
        if bell == self._rung and now - self._rung_at < RING_AGAIN_S:
            return
        path = str(self._folder / f"{self._ours}.bell")
        descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT, 0o600)
        if os.fstat(descriptor).st_size > BELL_BYTES:  # none of ours
            os.ftruncate(descriptor, 0)
        write_whole(descriptor, pack_bell(bell, self._key))
        self._rung, self._rung_at = bell, now

    def _sweep(self) -> None:
        """Remove what we, or ends of our kind before us, wrote for other connections."""
        if self._swept:
            return
        ours = f"{self._ours}-{self._life.hex()}-{self._peer.hex()}-"
        for name in os.listdir(self._folder):
            if name.startswith(f"{self._ours}-") and not name.startswith(ours):
                with contextlib.suppress(OSError):  # none of ours, such as a folder: it stays
                    os.unlink(self._folder / name)
        self._swept = True

    def _fails(self, what: str, error: OSError) -> None:
        text = error.strerror or str(error)
        if text != self._troubles.get(what):
            _log.warning("%s cannot be %s: %s", self._folder, what, text)
        self._troubles[what] = text
        self._is_there = not self._makes


def contents_of(path: str, most: int, *, fresh: bool = False) -> bytes:
    """Read what a file holds; nothing if it is larger. Raises ``OSError``.

    Args:
        path: of the file.
        most: bytes.
        fresh: whether pages of an earlier look are dropped: a file that changes twice within a tick
            of its server's clock, and keeps its size, looks unchanged to a client of NFS.
    """
    descriptor = open_regular(path, os.O_RDONLY)
    try:
        if os.fstat(descriptor).st_size > most:
            return b""
        if fresh and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        parts, left = [], most
        while left >= 0 and (part := os.read(descriptor, 1 << 20)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts) if left >= 0 else b""  # it grows: no end of ours writes so
    finally:
        os.close(descriptor)


def write_whole(descriptor: int, content: bytes) -> None:
    """Write a file and close it, which brings it to the file server. Raises ``OSError``."""
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)
