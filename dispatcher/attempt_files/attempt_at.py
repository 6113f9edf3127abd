"""One attempt, the worker it runs or ran on, and where its files lie in the experiment's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dispatcher.folders.experiment_folder import ExperimentFolder

#: The worker of this machine (`experiment.service`, which commands that only look do not load).
_LOCAL = "local"


@dataclass(frozen=True)
class AttemptAt:
    """One attempt, and the worker that runs or ran it; ``pid`` 0 if there is none."""

    worker: str | None
    trial: int
    number: int
    pid: int = 0

    @property
    def is_here(self) -> bool:
        """Whether it is this machine's."""
        return self.worker in (None, _LOCAL)

    @property
    def name(self) -> str:
        """The trial and the number, as in ``3.1``."""
        return f"{self.trial}.{self.number}"


def kept_here(folder: ExperimentFolder, attempt: AttemptAt) -> Path:
    """Return the folder of an attempt in the experiment's: written by trials of this machine, and
    filled with files that are fetched from others."""
    return folder.attempt(attempt.trial, attempt.number)
