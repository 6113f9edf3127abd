"""The files of all attempts of one worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


class AttemptShell(Protocol):
    """A shell beside one attempt, of a platform that does not show its files. Thread: one."""

    def open(self, command: Sequence[str], *, terminal: bool) -> int:
        """Run a command there with our stdin, stdout and stderr, and return its exit code. Raises
        ``BackendError``.

        Args:
            command: the program and its arguments; empty: a shell.
            terminal: whether it gets a terminal.
        """
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
