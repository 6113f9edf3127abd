"""Folders and settings of an attempt on its machine, for the programs that run there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


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
        paths: what an import finds there beside the code.
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
    paths: tuple[str, ...] = ()
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
