"""The cursor of a sink, on disk: written by rename, and only when the tracker has it all.

One process at a time feeds one sink: it holds a lock beside the cursor.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.folders.small_file import read_small
from dispatcher.queries.changed import is_cursor
from dispatcher.sinks.protocol import Json
from trial_runtime import durable_file


class SinkBusy(UserError):
    """Raised when another process feeds the same sink."""


#: Raised when an older reader could misread a cursor.
VERSION: Final = 1

#: No trial, attempt or message has a number like this; a cursor with one is not ours.
_MOST_TRIALS: Final = 1 << 31


@dataclass(slots=True)
class LiveRun:
    """A run that has begun and not ended: the attempt, its last message, and where that lies."""

    attempt: int
    seq: int = 0
    place: Json = None


@dataclass(slots=True)
class Cursor:
    """All that one sink has taken.

    Attributes:
        experiment: the id of the experiment and when it was created: what tells it from another
            one of the same name.
        after: the cursor of :func:`dispatcher.queries.changes`.
        closed: a bit for each trial that has ended and was taken.
        live: the others that have begun.
        memo: the sink's own.
    """

    experiment: str
    after: str = ""
    closed: bytearray = field(default_factory=bytearray)
    live: dict[int, LiveRun] = field(default_factory=dict)
    memo: Json = None

    def advance(self, after: str) -> None:
        """Note how far changes were read."""
        self.after = after

    def place(self, places: Mapping[int, Json], memo: Json) -> None:
        """Note where live runs are, and the sink's own memo."""
        for trial, live in self.live.items():
            live.place = places.get(trial)
        self.memo = memo

    def close(self, trial: int) -> None:
        """Note that a run has ended, and all of it was taken."""
        self.live.pop(trial, None)
        lacking = trial // 8 + 1 - len(self.closed)
        if lacking > 0:
            self.closed.extend(bytes(lacking))
        self.closed[trial // 8] |= 1 << trial % 8

    def is_closed(self, trial: int) -> bool:
        """Whether all of a run was taken."""
        byte = trial // 8
        return byte < len(self.closed) and bool(self.closed[byte] >> trial % 8 & 1)

    @property
    def closed_runs(self) -> int:
        """How many runs have ended and were taken."""
        return int.from_bytes(self.closed, "big").bit_count()

    def encoded(self) -> bytes:
        """The cursor as it is written."""
        live = {str(t): [run.attempt, run.seq, run.place] for t, run in self.live.items()}
        body = {
            "version": VERSION,
            "experiment": self.experiment,
            "after": self.after,
            "closed": self.closed.hex(),
            "live": live,
            "memo": self.memo,
        }
        return json.dumps(body).encode() + b"\n"

    @classmethod
    def decoded(cls, content: bytes) -> Cursor:
        """Read what :meth:`encoded` wrote. Raises ``ValueError`` for anything else."""
        body: Any = json.loads(content)
        if not isinstance(body, dict) or body.get("version") != VERSION:
            raise ValueError("no cursor of this version")
        live = {}
        for trial, (attempt, seq, place) in body["live"].items():
            numbers = (int(trial), attempt, seq)
            if not all(type(one) is int and 0 <= one < _MOST_TRIALS for one in numbers):
                raise ValueError("a run without numbers")
            live[numbers[0]] = LiveRun(attempt, seq, place)
        closed = bytearray.fromhex(body["closed"])
        texts = (body["experiment"], body["after"])
        if len(closed) > _MOST_TRIALS // 8 or not all(isinstance(each, str) for each in texts):
            raise ValueError("a number that no trial has")
        if not is_cursor(body["after"]):
            raise ValueError("no cursor of changes")
        return cls(texts[0], texts[1], closed, live, body["memo"])


class CursorFile:
    """The file of a cursor, and the lock on it.

    Args:
        folder: in which it lies; made if it is missing.
        name: of the file.

    Raises:
        SinkBusy: another process feeds this sink.
        PermanentBackendError: the folder cannot be written.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.cursor.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            self._lock = os.open(folder / f"{name}.lock", flags, 0o600)
        except OSError as error:
            raise PermanentBackendError(
                f"a sink cannot keep its cursor: {error.strerror}", where=str(folder)
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            if not isinstance(error, BlockingIOError):
                self._lock = -1
                return  # a file system without locks
            raise SinkBusy(
                f"the sink {name!r} is fed by another process",
                hint="the head of a running experiment does it; 'bequeath status' shows how far",
                where=str(folder),
            ) from None

    def read(self) -> Cursor | None:
        """The cursor as it was written last; None if there is none that can be read: what it spoke
        of is then taken anew."""
        try:
            return Cursor.decoded(read_small(self.path))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def write(self, cursor: Cursor) -> None:
        """Replace it, durably. Raises ``OSError``; what was there then still is."""
        durable_file.replace(self.path, cursor.encoded())

    def forget(self) -> None:
        """Begin anew. Raises ``OSError``."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let the next process in. Idempotent."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
