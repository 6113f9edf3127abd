"""The ends of logs that agents hand in with the ends of their attempts, kept in the experiment's
folder: of a pod nothing else is left.

The engine passes them on and never waits; one thread writes them. What is handed in faster than it
is written is dropped, and so is everything while the disk is low.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dispatcher.attempt_files.attempt_at import AttemptAt, kept_here
from dispatcher.attempt_files.fetched import LOGS, Fetched
from dispatcher.core.events import DiskLow
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.queries import ExperimentReader
from dispatcher.wiring.watermark import Watermark
from trial_runtime import durable_file, wire
from trial_runtime.attempt_folder import stream_of
from trial_runtime.opening import open_regular

#: Bytes, and attempts, that may wait to be written.
MOST_WAITING_BYTES = 32 << 20
MOST_WAITING = 10_000

#: An end comes before the journal has it, and is looked for there within this time (seconds).
COMMITTED_S, LOOK_EVERY_S = 10.0, 0.1

#: Seconds at the end of an experiment for what waits still.
CLOSE_S = 10.0

_WORKER = "SELECT worker FROM attempts WHERE trial = ? AND attempt = ?"

_log = logging.getLogger("bequeath.files")


@dataclass(frozen=True, slots=True)
class _HandedIn:
    """The ends of an attempt's logs, and until when its row is waited for (monotonic)."""

    worker: str
    ends: wire.LogEnds
    until: float

    @property
    def attempt(self) -> AttemptAt:
        return AttemptAt(self.worker, self.ends.trial, self.ends.attempt)


class LogKeeper:
    """See above. Its thread begins with the first log.

    Args:
        folder: the experiment's.
        reserve_bytes: kept free on its disk.
        note: gets a sentence on logs that are not kept. From the thread.
        clock: monotonic seconds.
        pause: lets seconds pass.
    """

    def __init__(
        self,
        folder: ExperimentFolder,
        reserve_bytes: int,
        note: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = folder
        self._note = note
        self._clock = clock
        self._pause = pause
        self._disk = Watermark(str(folder.path), reserve_bytes)
        self._changed = threading.Condition()
        self._waiting: deque[_HandedIn] = deque()
        self._waiting_bytes = 0
        self._dropped = 0  # attempts whose logs nobody has room for
        self._noted = ""  # why the last ones were not kept
        self._closing = False
        self._thread: threading.Thread | None = None

    def take(self, worker: str, logs: Sequence[wire.LogEnds]) -> None:
        """Have the ends of logs kept; never blocks. Any thread.

        Args:
            worker: whose agent hands them in.
            logs: of its attempts.
        """
        until = self._clock() + COMMITTED_S
        with self._changed:
            for each in logs:
                full = self._waiting_bytes + each.nbytes > MOST_WAITING_BYTES
                if full or len(self._waiting) >= MOST_WAITING or self._closing:
                    self._dropped += 1
                    continue
                self._waiting_bytes += each.nbytes
                self._waiting.append(_HandedIn(worker, each, until))
            self._changed.notify_all()
            if self._thread is None and self._waiting:
                self._thread = threading.Thread(target=self._run, name="logs", daemon=True)
                self._thread.start()

    def close(self, limit_s: float = CLOSE_S) -> None:
        """Write what waits, and end. Blocks for ``limit_s`` at most."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(limit_s)
        if self._dropped:
            self._note(f"logs of {self._dropped} attempts came faster than they could be kept")

    def _run(self) -> None:
        try:
            with ExperimentReader.open(self._folder.path) as reader:
                while (given := self._next()) is not None:
                    if not self._is_settled(reader, given):
                        self._put_back(given)
        except Exception as error:  # noqa: BLE001 - the top of a thread
            _log.exception("logs are kept no more")
            self._note(f"logs that agents hand in are kept no more: {error}")
            with self._changed:
                self._closing = True

    def _next(self) -> _HandedIn | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            if not self._waiting:
                return None
            given = self._waiting.popleft()
            self._waiting_bytes -= given.ends.nbytes
            return given

    def _put_back(self, given: _HandedIn) -> None:
        """Let a moment pass: the journal has the ends of attempts in the order of their logs."""
        with self._changed:
            self._waiting.appendleft(given)
            self._waiting_bytes += given.ends.nbytes
        self._pause(LOOK_EVERY_S)  # until the engine has committed: nothing tells of it

    def _is_settled(self, reader: ExperimentReader, given: _HandedIn) -> bool:
        """Keep the logs of an attempt, or drop what is none of its worker's; false: it is in no
        row yet."""
        attempt = given.attempt
        row = reader.row(_WORKER, (attempt.trial, attempt.number))
        if row is None and self._clock() < given.until:
            return False
        if row is None or row["worker"] != given.worker:
            _log.warning("%s hands in logs of %s, which it did not run", given.worker, attempt.name)
            return True
        low = self._disk.judge(os.statvfs(self._folder.path))
        if isinstance(low, DiskLow):
            self._say(f"the disk is low: logs of attempts on {given.worker} are not kept")
            return True
        try:
            keep(kept_here(self._folder, attempt), attempt.name, given.worker, given.ends)
        except OSError as error:
            self._say(f"logs of attempts are not kept: {error.strerror or error}")
        else:
            self._noted = ""
        return True

    def _say(self, text: str) -> None:
        """Note what is wrong, once until it is right again."""
        if text != self._noted:
            self._noted = text
            self._note(text)


def keep(into: Path, name: str, place: str, ends: wire.LogEnds) -> None:
    """Put the ends of an attempt's logs into its folder, beside what was fetched of it before.

    Args:
        into: the folder; made if it is not there.
        name: of the attempt, as in ``3.1``.
        place: where it ran, for people.
        ends: of its logs.

    Raises:
        OSError: the disk does not take them.
    """
    into.mkdir(parents=True, exist_ok=True)
    record = Fetched.read(into, name)
    record.place = record.place or place
    for each in ends.logs:
        if each.name and stream_of(each.name) == each.name:  # else it is no name of a log
            _keep_end(into, record, each)
    record.kinds = sorted({*record.kinds, LOGS})
    record.write(into)


def _keep_end(into: Path, record: Fetched, end: wire.LogEnd) -> None:
    """Put the end of one log behind what was fetched of it, or in its place."""
    path = into / end.name
    known = record.files.get(end.name, "")
    here = _size_of(path) if known and known.partition("-")[0] == end.identity else 0
    begins = record.begins.get(end.name, 0) if here else 0
    if here and begins + here >= end.before:
        rest = end.data[begins + here - end.before :]
        if rest:
            with open(open_regular(str(path), os.O_WRONLY | os.O_APPEND), "wb") as file:
                file.write(rest)
    else:
        begins = end.before
        if known:
            _set_aside(path, record)
        durable_file.replace(path, end.data, mode=None, durable=False)
    record.files[end.name] = end.version
    record.begins[end.name] = begins
    lacking = begins + (0 if f"{end.name}.1" in record.files else end.older)
    if lacking:
        record.left[end.name] = f"its first {lacking:,} bytes are gone with its place"
    else:
        record.left.pop(end.name, None)


def _set_aside(path: Path, record: Fetched) -> None:
    """Keep what was fetched of a log as its older part: its end does not join on to it."""
    older = f"{path.name}.1"
    if older in record.files or not _size_of(path):
        return
    os.replace(path, path.with_name(older))
    record.files[older] = record.files.pop(path.name)
    record.begins[older] = record.begins.pop(path.name, 0)


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
