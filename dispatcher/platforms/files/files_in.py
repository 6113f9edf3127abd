"""Files of attempts whose folder can be seen on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dispatcher.platforms.files.here import LocalFiles
from dispatcher.platforms.files.whereabouts import Whereabouts
from dispatcher.platforms.given import Given
from dispatcher.ports import AttemptFiles


def files_in(given: Given[Any], home: Path, trial: int, attempt: int) -> AttemptFiles:
    """The files of an attempt, read where they lie.

    Args:
        given: that of its worker.
        home: the experiment's folder, as its agent has it.
        trial: the number of its trial.
        attempt: its number within the trial.
    """
    config = given.config
    folder = f"{home}/trials/{trial}/{attempt}"
    whereabouts = Whereabouts(
        config.experiment,
        trial,
        attempt,
        folder,
        work=f"{folder}/work" if config.trial.own_folders else "",
        checkpoints=f"{folder}/checkpoints",
        code=config.trial.code_directory,
        weights_root=config.weights_root,
    )
    return LocalFiles(whereabouts)
