"""The files of all attempts of one worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dispatcher.ports import AttemptFiles


class WorkerFiles(Protocol):
    """The files of all attempts of one worker. Thread: one."""

    def of(self, trial: int, attempt: int, *, pid: int = 0) -> AttemptFiles | None:
        """Return the files of one attempt; None if they are not shown. Does not block.

        Args:
            trial: the number of its trial.
            attempt: its number within the trial.
            pid: that of its process there, as the journal has it; 0 for none.
        """
        ...

    def close(self) -> None:
        """Log out, if logged in; the next question logs in again."""
        ...


class FilesOneByOne:
    """Files of a platform that shows each attempt for itself, and keeps nothing open between."""

    def __init__(self, files: Callable[[int, int], AttemptFiles | None]) -> None:
        self._files = files

    def of(self, trial: int, attempt: int, *, pid: int = 0) -> AttemptFiles | None:
        """See :meth:`WorkerFiles.of`."""
        return self._files(trial, attempt)

    def close(self) -> None:
        """Do nothing: nothing is open."""
