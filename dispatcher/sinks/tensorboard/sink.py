"""The files: one folder a trial with one file, and one file beside them for the experiment.

What a file holds follows from the store alone, so it can be cut back to a place and written on,
byte for byte. ``docs/decisions/0086`` says why no library writes them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dispatcher.errors import PassingBackendError
from dispatcher.sinks.naming import flat_numbers, flat_parameters
from dispatcher.sinks.protocol import Flushed, Json, Point, Surroundings, TrialEnd, TrialRun
from dispatcher.sinks.stored_points import NumberColumns, StoredPoints
from dispatcher.sinks.tensorboard import messages
from dispatcher.sinks.tensorboard.columns import Columns
from dispatcher.sinks.tensorboard.messages import SessionStatus
from dispatcher.sinks.tensorboard.on_disk import bring_to_disk
from dispatcher.sinks.tensorboard.records import framed, framed_each
from dispatcher.sinks.tensorboard.scalars import framed_scalars
from trial_runtime import durable_file

#: TensorBoard takes each file with "tfevents" in its name.
_NAME: Final = "events.out.tfevents.{at:010d}.bequeath.{number}"
_OURS: Final = re.compile(r"events\.out\.tfevents\.\d+\.bequeath\.\d+")
_TRIAL: Final = re.compile(r"trial-\d{5,}")

#: Bytes that are held before they are written: some thousand points, which are encoded together.
MOST_HELD: Final = 1 << 18

#: Bytes of memory that a point of a number takes while it is held.
_POINT_BYTES: Final = 128

#: The tags of HParams' own columns for results.
METRICS: Final = ("final", "default")


class _Run:
    """The file of one run, and what waits to be written to it. It is made when it is first written.

    Args:
        path: of the file.
        place: the bytes that are there; None if there is no such file yet.

    Attributes:
        place: the bytes that are there.
        parts: what waits to be written, in its order.
        bare: records that wait for their frames, by their places among the parts.
        columns: points that wait to become records, as above.
    """

    def __init__(self, path: Path, place: int | None) -> None:
        self.path = path
        self.place = place or 0
        self._made = place is not None
        self.parts: list[bytes] = []
        self.bare: dict[int, bytes] = {}
        self.columns: dict[int, NumberColumns] = {}

    def add(self, record: bytes) -> int:
        """Hold a record; returns its bytes, more or less."""
        self.bare[len(self.parts)] = record
        self.parts.append(b"")
        return len(record)

    def add_columns(self, columns: NumberColumns) -> int:
        """Hold points; returns their bytes, more or less."""
        self.columns[len(self.parts)] = columns
        self.parts.append(b"")
        return _POINT_BYTES * len(columns.seqs)

    def write(self, records: Iterator[bytes], scalars: Iterator[bytes]) -> None:
        """Write what is held.

        Args:
            records: those in :attr:`bare` come next, in their frames.
            scalars: those in :attr:`columns` come next, as framed records.
        """
        for place in self.bare:
            self.parts[place] = next(records)
        for place in self.columns:
            self.parts[place] = next(scalars)
        content = b"".join(self.parts)
        self.parts, self.bare, self.columns = [], {}, {}
        new = 0 if self._made else os.O_CREAT | os.O_EXCL
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | new
        descriptor = os.open(self.path, flags, 0o666)
        self._made = True
        try:
            written = os.write(descriptor, content)
            while written < len(content):
                written += os.write(descriptor, content[written:])
        finally:
            os.close(descriptor)
        self.place += len(content)


class TensorBoardSink:
    """Writes below one folder.

    Args:
        folder: its own; made if it is missing.
        surroundings: the experiment, and what the sink before has kept.
    """

    def __init__(self, folder: Path, surroundings: Surroundings) -> None:
        self._folder = folder
        self._experiment = surroundings.experiment
        self._runs: dict[int, _Run] = {}
        self._ended: dict[int, _Run] = {}  # since the last flush
        self._held = 0  # bytes that are not written yet
        self._columns = Columns(surroundings.experiment.search_space, surroundings.memo)
        self._changed = surroundings.memo is None
        with _Disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if surroundings.memo is None:
                self._clear()

    def _clear(self) -> None:
        """Remove what a sink has left that did not get as far as a cursor. Only files of ours."""
        for entry in list(self._folder.iterdir()):
            if _OURS.fullmatch(entry.name):
                entry.unlink()
            elif _TRIAL.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink():
                remove_ours(entry)

    def begin(self, run: TrialRun, place: Json) -> bool:
        """Make the file, or cut it back."""
        name = f"trial-{run.trial:05d}"
        folder = self._folder / name
        path = folder / _NAME.format(at=max(0, int(run.started_at)), number=run.attempt)
        with _Disk(path):
            if place is not None:
                _remove_link(folder)
                return self._cut_back(run.trial, path, place)
            _empty(folder)
        self._runs[run.trial] = file = _Run(path, None)
        fitted = self._fitted(run)
        self._changed |= self._columns.gather(fitted)
        at = run.started_at
        self._held += file.add(messages.file_version(at))
        if run.attempt > 1:
            self._held += file.add(messages.session_start(at))
        self._held += file.add(messages.hparams_start(at, name, fitted))
        return True

    def _fitted(self, run: TrialRun) -> dict[str, messages.Plain]:
        parameters = self._columns.fitted(flat_parameters(run.parameters))
        own: dict[str, float] = {"generation": run.generation}
        if run.parent is not None:
            own["parent"] = run.parent
        for name, value in own.items():
            parameters[f"bequeath/{name}" if name in parameters else name] = float(value)
        return parameters

    def _cut_back(self, trial: int, path: Path, place: Json) -> bool:
        """Cut a file of ours back, if it is there: never what a link of that name leads to."""
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EISDIR):
                return False
            raise
        try:
            info = os.fstat(descriptor)
            ours = stat.S_ISREG(info.st_mode) and info.st_nlink == 1
            if not (ours and isinstance(place, int) and 0 <= place <= info.st_size):
                return False
            os.ftruncate(descriptor, place)
        finally:
            os.close(descriptor)
        self._runs[trial] = _Run(path, place)
        return True

    def points(self, run: TrialRun, points: Sequence[Point]) -> None:
        """Hold scalars; many are written at once."""
        file = self._runs[run.trial]
        columns = points.number_columns() if isinstance(points, StoredPoints) else None
        if columns is not None:  # a million of them in one search
            self._held += file.add_columns(columns)
        else:
            for point in points:
                for tag, number in flat_numbers(point.value, point.number).items():
                    self._held += file.add(messages.scalar(tag, point.at, point.seq, number))
        self._write_much()

    def end(self, run: TrialRun, end: TrialEnd) -> None:
        """Hold the end, too: hundreds of files are written one after the other."""
        self._ended[run.trial] = file = self._runs.pop(run.trial)
        status = SessionStatus.SUCCESS if end.success else SessionStatus.FAILURE
        for tag, number in flat_numbers(end.result, end.value).items():
            name = "final" if tag == "default" else f"final/{tag}"
            self._held += file.add(messages.scalar(name, end.at, 0, number))
        self._held += file.add(messages.hparams_end(end.at, status))
        self._write_much()

    def _write_much(self) -> None:
        """Write all that is held if it is much."""
        if self._held > MOST_HELD:
            with _Disk(self._folder):
                self._write()

    def _write(self) -> None:
        """Write all that is held. Raises ``OSError``."""
        files = [one for one in (*self._runs.values(), *self._ended.values()) if one.parts]
        records = framed_each([one for file in files for one in file.bare.values()])
        columns = [one for file in files for one in file.columns.values()]
        scalars = framed_scalars("default", columns)
        bare, points = iter(records), iter(scalars)
        for file in files:
            file.write(bare, points)
        self._held = 0

    def drop(self, trials: Sequence[int]) -> None:
        """Remove the folders of runs."""
        for trial in trials:
            self._ended.pop(trial, None)
            folder = self._folder / f"trial-{trial:05d}"
            with _Disk(folder), contextlib.suppress(FileNotFoundError):
                _remove_link(folder)
                remove_ours(folder)
                folder.rmdir()

    def flush(self) -> Flushed:
        """Write all; what has ended is on disk then, and survives a power cut."""
        with _Disk(self._folder):
            self._write()
            bring_to_disk([file.path for file in self._ended.values()], self._folder)
            self._ended = {}
            if self._changed:
                self._write_experiment()
                self._changed = False
        places = {trial: file.place for trial, file in self._runs.items()}
        return Flushed(places, self._columns.memo())

    def _write_experiment(self) -> None:
        at = self._experiment.created_at
        columns = self._columns.encoded()
        description = f"{self._experiment.name} ({self._experiment.id})"
        event = messages.hparams_experiment(at, description, columns, METRICS)
        content = framed([messages.file_version(at), event])
        path = self._folder / _NAME.format(at=max(0, int(at)), number=0)
        durable_file.replace(path, content, mode=None)

    def close(self, status: str) -> None:
        """Do nothing: nothing is held open."""


class _Disk:
    """Errors of the disk as ours, with their place. They may pass: a full disk is tried again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            where = str(error.filename or self._path)
            text = f"TensorBoard's files cannot be written: {error.strerror or error}"
            hint = "free space there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            raise PassingBackendError(text, hint=hint, where=where) from error


def _empty(folder: Path) -> None:
    """Make a trial's folder, or remove our files from it. Raises ``OSError``."""
    try:
        folder.mkdir()
    except FileExistsError:
        _remove_link(folder)
        folder.mkdir(exist_ok=True)
        remove_ours(folder)


def _remove_link(folder: Path) -> None:
    """Remove what leads elsewhere under the name of a trial's folder. Raises ``OSError``."""
    if folder.is_symlink():
        folder.unlink()


def remove_ours(folder: Path) -> None:
    """Remove the files of sinks from a trial's folder, and nothing else. Raises ``OSError``."""
    for entry in list(folder.iterdir()):
        if _OURS.fullmatch(entry.name):
            entry.unlink()
