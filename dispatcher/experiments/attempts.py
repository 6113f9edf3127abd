"""One trial of an experiment with its attempts: the one that is meant, its output and its files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from dispatcher import queries
from dispatcher.attempt_files import fetching, log_stream
from dispatcher.attempt_files.attempt_at import AttemptAt, kept_here
from dispatcher.attempt_files.fetched import logs_are_kept
from dispatcher.attempt_files.ways import (
    files_here,
    files_of,
    files_to_follow,
    goes_with_its_place,
    is_fetched,
    why_in_part,
)
from dispatcher.errors import BackendError, UserError

if TYPE_CHECKING:
    from dispatcher.attempt_files.fetching import FetchResult
    from dispatcher.experiments.view import ExperimentView
    from dispatcher.ports import AttemptFiles, FileEntry, FileList
    from dispatcher.queries import TrialDetail

_OVER = ("delivering", "ended", "backoff")

#: Seconds between looks at a trial that has not begun, and at output on another machine.
_LOOK_EVERY_S = 0.5
_LOOK_ELSEWHERE_S = 1.0

#: The kinds of files that are fetched where none are named.
_USUAL = ("logs", "artefacts")


class ShownFiles(NamedTuple):
    """The files of an attempt that can be looked at now; close them at the end.

    ``away``: why they are only those that are here, if they are: fetched before, or handed in with
    its end. ``lacks``: why the stream that was asked for is not all here then.
    """

    files: AttemptFiles
    listed: FileList
    away: BackendError | None = None
    lacks: str = ""


class LocatedTrial:
    """One trial of an experiment, with the experiment's store open for reading.

    Raises:
        TrialNotFound: the experiment has no such trial.
    """

    def __init__(self, experiment: ExperimentView, trial: int) -> None:
        self.experiment = experiment
        self.folder = experiment.place
        self.trial = trial
        self._reader = queries.ExperimentReader.open(experiment.folder)
        try:
            self.detail: TrialDetail = queries.trial(self._reader, trial)
        except BaseException:
            self._reader.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reader.close()

    def look_again(self) -> None:
        """Read the trial's record again."""
        self.detail = queries.trial(self._reader, self.trial)

    @property
    def newest(self) -> int:
        """The number of its newest attempt; 0 if none has begun."""
        return max((each.number for each in self.detail.attempts), default=0)

    @property
    def state(self) -> str:
        """The trial's outcome, or its state while it is not over."""
        return self.detail.trial.outcome or self.detail.trial.state

    def attempt(self, number: int | None) -> AttemptAt:
        """Return an attempt, the newest if no number is given.

        Raises:
            UserError: it has not begun.
        """
        wanted = number or self.newest
        for each in self.detail.attempts:
            if each.number == wanted:
                return AttemptAt(each.worker, self.trial, wanted, each.pid or 0)
        if number is not None and self.newest:
            text = f"trial {self.trial} has no attempt {number}, and {self.newest} is its newest"
            raise UserError(text, where=self.experiment.id)
        text = f"trial {self.trial} has not started: it is {self.state}"
        raise UserError(text, hint=f"bequeath why {self.trial}", where=self.experiment.id)

    def over(self, number: int) -> bool:
        """Whether that attempt is over."""
        one = self.detail.trial
        return one.attempt > number or one.state in _OVER

    def wait_until_begun(self, attempt: int | None) -> bool:
        """Block until an attempt, the first if no number is given, has begun; false if it never
        will."""
        while (attempt or 1) > self.newest:
            if self.detail.trial.over:
                return False
            time.sleep(_LOOK_EVERY_S)
            self.look_again()
        return True

    # -- what an attempt has left, wherever it ran ----------------------------------------------

    def folder_of(self, attempt: AttemptAt) -> Path:
        """Return the folder for an attempt's files in the experiment's."""
        return kept_here(self.folder, attempt)

    def open_files(self, attempt: AttemptAt, *, of_kind: str = "") -> AttemptFiles:
        """Return the files of an attempt where it runs or ran; no machine is asked yet.

        Args:
            attempt: the attempt.
            of_kind: all that is wanted; they are read here if they were fetched after its end.

        Raises:
            BackendError: its worker is gone from the experiment's file.
        """
        if of_kind and self._is_here(attempt, of_kind):
            return files_here(self.folder, attempt)
        return files_of(self.folder, attempt)

    def open_output(self, attempt: AttemptAt) -> AttemptFiles:
        """Return the files of an attempt whose output is to be followed to its end: also where its
        place goes with it. No machine is asked yet.

        Raises:
            BackendError: its worker is gone from the experiment's file.
        """
        if self._is_here(attempt, "logs"):
            return files_here(self.folder, attempt)
        return files_to_follow(self.folder, attempt)

    def _is_here(self, attempt: AttemptAt, kind: str) -> bool:
        return self.over(attempt.number) and is_fetched(self.folder, attempt, kind)

    def show_files(self, attempt: AttemptAt, stream: str = "") -> ShownFiles:
        """List the files of an attempt: of its machine, else those that are here.

        Args:
            attempt: the attempt.
            stream: only the parts of this one, ``stdout`` or ``stderr``.

        Raises:
            BackendError: its machine is not to be reached, and nothing is here.
        """
        try:
            there = self.open_files(attempt, of_kind="logs" if stream else "")
            try:
                return ShownFiles(there, there.list(stream, most=fetching.MOST_FILES))
            except BaseException:
                there.close()
                raise
        except BackendError as error:
            if attempt.is_here:
                raise
            here = files_here(self.folder, attempt)
            listed = here.list(stream, most=fetching.MOST_FILES)
            if not (listed.entries or (stream and logs_are_kept(self.folder, attempt))):
                raise
            return ShownFiles(here, listed, error, why_in_part(self.folder, attempt, stream))

    def follow(self, attempt: AttemptAt, files: AttemptFiles, stream: str) -> Iterator[bytes]:
        """Yield the newest part of an output, and all that is appended until the attempt is over.

        Args:
            attempt: the attempt.
            files: its files.
            stream: ``stdout`` or ``stderr``.
        """

        def is_over() -> bool:
            self.look_again()
            return self.over(attempt.number)

        every_s = log_stream.LOOK_EVERY_S if attempt.is_here else _LOOK_ELSEWHERE_S
        return log_stream.follow(files, stream, is_over, look_every_s=every_s)

    def open_to_fetch(self, attempt: AttemptAt) -> tuple[AttemptFiles, BackendError | None]:
        """Return the files of an attempt where it runs or ran; where they went with their place,
        those that are here, and why its agent is not reached.

        Raises:
            BackendError: its worker is gone from the experiment's file.
        """
        files = self.open_files(attempt)
        if not goes_with_its_place(files) or not logs_are_kept(self.folder, attempt):
            return files, None
        try:
            files.list("stdout", most=1)
        except BackendError as error:
            files.close()
            return files_here(self.folder, attempt), error
        return files, None

    def kept(self, files: AttemptFiles, patterns: Sequence[str], gone: BackendError) -> FetchResult:
        """Return what is here of an attempt, as if it had just been fetched: nothing is copied.

        Args:
            files: those in the experiment's folder.
            patterns: as for :meth:`fetch`.
            gone: why its agent is not reached.

        Raises:
            BackendError: that one, if nothing that is meant is here.
        """
        listed = files.list(most=fetching.MOST_FILES)
        wanted = [each for each in listed.entries if not each.link and _is_wanted(each, patterns)]
        if not wanted:
            raise gone
        return fetching.FetchResult(same=len(wanted), cut=listed.cut)

    def fetch(
        self,
        attempt: AttemptAt,
        files: AttemptFiles,
        patterns: Sequence[str],
        *,
        into: Path,
        most_bytes: int | None = None,
    ) -> FetchResult:
        """Bring files of an attempt here. Blocks.

        Args:
            attempt: the attempt.
            files: its files where it runs or ran.
            patterns: those to fetch; its output and its artefacts if there are none.
            into: a folder, made if it is missing.
            most_bytes: of all together; files that do not fit are left. None: no limit.

        Raises:
            BackendError: as of :func:`dispatcher.attempt_files.fetching.fetch`.
        """

        def wanted(entry: FileEntry) -> bool:
            return _is_wanted(entry, patterns)

        complete = _USUAL if self.over(attempt.number) and not patterns else ()
        return fetching.fetch(
            files, into, attempt.name, wanted, most_bytes=most_bytes, over=complete
        )


def _is_wanted(entry: FileEntry, patterns: Sequence[str]) -> bool:
    """Whether a file is one of those that are named, or of those that are fetched where none is."""
    if patterns:
        return fetching.matches(entry.path, tuple(patterns))
    return fetching.kind_of(entry.path) in _USUAL
