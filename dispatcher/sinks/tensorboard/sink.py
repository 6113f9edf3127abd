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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from dispatcher.errors import PassingBackendError
from dispatcher.sinks.naming import flat_numbers, flat_parameters
from dispatcher.sinks.protocol import Flushed, Json, Point, Surroundings, TrialEnd, TrialRun
from dispatcher.sinks.tensorboard import messages
from dispatcher.sinks.tensorboard.columns import Columns
from dispatcher.sinks.tensorboard.messages import SessionStatus
from dispatcher.sinks.tensorboard.on_disk import bring_to_disk
from dispatcher.sinks.tensorboard.records import framed
from trial_runtime import durable_file

#: TensorBoard takes each file with "tfevents" in its name.
_NAME: Final = "events.out.tfevents.{at:010d}.bequeath.{number}"
_OURS: Final = re.compile(r"events\.out\.tfevents\.\d+\.bequeath\.\d+")
_TRIAL: Final = re.compile(r"trial-\d{5,}")

#: Bytes of one trial that are held before they are written.
_MOST_HELD: Final = 1 << 20

#: The tags of HParams' own columns for results.
METRICS: Final = ("final", "default")


class _Run:
    """The file of one run, and what waits to be written to it."""

    def __init__(self, path: Path, place: int) -> None:
        self.path = path
        self.place = place
        self.records: list[bytes] = []
        self.held = 0

    def add(self, records: Iterable[bytes]) -> None:
        """Hold records until there are enough of them."""
        new = list(records)
        self.records += new
        self.held += sum(map(len, new))
        if self.held > _MOST_HELD:
            self.write()

    def write(self) -> None:
        """Write what is held."""
        content = framed(self.records)
        self.records, self.held = [], 0
        if not content:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(self.path, flags), "ab", buffering=0) as file:
            written = 0
            while written < len(content):
                written += file.write(content[written:])
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
        self._ended: list[_Run] = []
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
        folder = self._folder / f"trial-{run.trial:05d}"
        path = folder / _NAME.format(at=max(0, int(run.started_at)), number=run.attempt)
        with _Disk(path):
            _remove_link(folder)
            if place is not None:
                return self._cut_back(run.trial, path, place)
            folder.mkdir(exist_ok=True)
            remove_ours(folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(path, flags, 0o666))
        self._runs[run.trial] = file = _Run(path, 0)
        fitted = self._fitted(run)
        self._changed |= self._columns.gather(fitted)
        at = run.started_at
        file.add([messages.file_version(at)])
        if run.attempt > 1:
            file.add([messages.session_start(at)])
        file.add([messages.hparams_start(at, folder.name, fitted)])
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
        scalar = messages.scalar
        file = self._runs[run.trial]
        records = []
        for point in points:  # a million of them in one search: the usual ones first
            if point.number is not None and not isinstance(point.value, dict):
                records.append(scalar("default", point.at, point.seq, point.number))
            else:
                numbers = flat_numbers(point.value, point.number)
                records += [scalar(t, point.at, point.seq, n) for t, n in numbers.items()]
        with _Disk(file.path):
            file.add(records)

    def end(self, run: TrialRun, end: TrialEnd) -> None:
        """Write the end."""
        file = self._runs.pop(run.trial)
        finals = flat_numbers(end.result, end.value)
        status = SessionStatus.SUCCESS if end.success else SessionStatus.FAILURE
        with _Disk(file.path):
            file.add(
                messages.scalar("final" if tag == "default" else f"final/{tag}", end.at, 0, number)
                for tag, number in finals.items()
            )
            file.add([messages.hparams_end(end.at, status)])
            file.write()
        self._ended.append(file)

    def drop(self, trials: Sequence[int]) -> None:
        """Remove the folders of runs."""
        for trial in trials:
            folder = self._folder / f"trial-{trial:05d}"
            with _Disk(folder), contextlib.suppress(FileNotFoundError):
                _remove_link(folder)
                remove_ours(folder)
                folder.rmdir()

    def flush(self) -> Flushed:
        """Write all; what has ended is on disk then, and survives a power cut."""
        with _Disk(self._folder):
            for file in self._runs.values():
                file.write()
            bring_to_disk([file.path for file in self._ended], self._folder)
            self._ended = []
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


def _remove_link(folder: Path) -> None:
    """Remove what leads elsewhere under the name of a trial's folder. Raises ``OSError``."""
    if folder.is_symlink():
        folder.unlink()


def remove_ours(folder: Path) -> None:
    """Remove the files of sinks from a trial's folder, and nothing else. Raises ``OSError``."""
    for entry in list(folder.iterdir()):
        if _OURS.fullmatch(entry.name):
            entry.unlink()
