"""The files of attempts: where they are on a machine, and how they are read on this one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatcher.errors import PermanentBackendError
from dispatcher.ports import AttemptFiles, FileEntry, FileList, FilePiece
from dispatcher.remote_python.on_host import shell
from trial_runtime import attempt_folder

if TYPE_CHECKING:
    from dispatcher.platforms.given import Given
    from trial_runtime.agent.config import AgentConfig


@dataclass(frozen=True)
class Whereabouts:
    """The whereabouts of one attempt. Folders are absolute, or begin with ``~/``.

    Attributes:
        experiment: its id, by which its processes are known.
        trial: the number of its trial.
        attempt: its number within the trial.
        pid: of its process, as the journal has it; 0 for none.
        folder: the one with its logs and artefacts.
        work: its working directory, if it has one of its own.
        checkpoints: the folder of its trial's checkpoints.
        code: the folder where it runs without a working directory of its own; empty if that is
            not known.
        weights_root: the weights root there.
        runtimes: folder in which packages of ours lie by version; empty on this machine.
        environment: gives the variables of trials, references looked up. Asked for a shell alone;
            in no list of processes, and in no file.
    """

    experiment: str
    trial: int
    attempt: int
    folder: str
    pid: int = 0
    work: str = ""
    checkpoints: str = ""
    code: str = ""
    weights_root: str = ""
    runtimes: str = ""
    environment: Callable[[], Mapping[str, str]] = field(default=dict, repr=False)

    def for_files(self) -> dict[str, Any]:
        """The part that reading files takes; nothing secret."""
        return {
            "folder": self.folder,
            "work": self.work,
            "checkpoints": self.checkpoints,
        }

    def for_shell(self) -> dict[str, Any]:
        """All of it, secrets included.

        Raises:
            ExperimentFileError: a reference leads nowhere.
        """
        return {**vars(self), "environment": dict(self.environment())}


class LocalFiles:
    """See :class:`dispatcher.ports.AttemptFiles`."""

    place = "this machine"

    def __init__(self, whereabouts: Whereabouts) -> None:
        self._whereabouts = whereabouts

    def list(self, below: str = "", *, most: int) -> FileList:
        """See :meth:`dispatcher.ports.AttemptFiles.list`."""
        listed = attempt_folder.listed(self._whereabouts.for_files(), below, most)
        return FileList([FileEntry(*each) for each in listed["files"]], listed["cut"])

    def read(self, path: str, offset: int, limit: int) -> FilePiece | None:
        """See :meth:`dispatcher.ports.AttemptFiles.read`."""
        try:
            head, data = attempt_folder.piece(self._whereabouts.for_files(), path, offset, limit)
        except OSError as error:
            raise PermanentBackendError(f"cannot be read: {error.strerror}", where=path) from error
        return FilePiece(data, **head) if head else None

    def shell(self, command: Sequence[str], *, terminal: bool) -> int:
        """See :meth:`dispatcher.ports.AttemptFiles.shell`; it shares our terminal."""
        del terminal
        whereabouts: dict[str, Any] = self._whereabouts.for_shell()
        try:
            environment, folder = shell.surroundings(whereabouts)
        except shell.FolderGone as error:
            attempt = f"{self._whereabouts.trial}.{self._whereabouts.attempt}"
            raise PermanentBackendError(
                f"nothing is left of attempt {attempt}: no {error}"
            ) from error
        argv = shell.command_line(list(command), environment)
        try:
            return with_our_terminal(argv, environment, folder)
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            os.write(2, f"bequeath: {argv[0]}: {error.strerror}\n".encode(errors="replace"))
            return shell.NO_COMMAND if gone else shell.NOT_RUNNABLE

    def close(self) -> None:
        """Do nothing: nothing is open."""


def with_our_terminal(
    argv: Sequence[str], environment: Mapping[str, str], folder: str | None = None
) -> int:
    """Run a program with our stdin, stdout and stderr; return its exit code. Raises ``OSError``.

    Args:
        argv: the program and its arguments.
        environment: all of its variables.
        folder: where it runs; None: here.
    """
    # A handler and not SIG_IGN, which the command would inherit: Ctrl-C is for it alone.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        done = subprocess.run(list(argv), env=environment, cwd=folder, check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def files_in(given: Given[Any], home: Path, trial: int, attempt: int) -> AttemptFiles:
    """The files of an attempt, read where they lie.

    Args:
        given: that of its worker.
        home: the experiment's folder, as its agent has it.
        trial: the number of its trial.
        attempt: its number within the trial.
    """
    return LocalFiles(whereabouts_in(given.config, home, trial, attempt))


def whereabouts_in(config: AgentConfig, home: Path, trial: int, attempt: int) -> Whereabouts:
    """The whereabouts of an attempt in the folder of a worker that is at the same path there.

    Args:
        config: of the worker's agent.
        home: the experiment's folder, as that has it.
        trial: the number of its trial.
        attempt: its number within the trial.
    """
    folder = f"{home}/trials/{trial}/{attempt}"
    return Whereabouts(
        config.experiment,
        trial,
        attempt,
        folder,
        work=f"{folder}/work" if config.trial.own_folders else "",
        checkpoints=f"{folder}/checkpoints",
        code=config.trial.code_directory,
        weights_root=config.weights_root,
    )
