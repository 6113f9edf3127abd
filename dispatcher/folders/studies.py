"""Studies, which a program leads: no head may."""

from __future__ import annotations

from pathlib import Path

from dispatcher.errors import PassingBackendError, PermanentBackendError, UserError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.names import LED_BY_PROGRAM


def refuse_study(folder: ExperimentFolder) -> None:
    """Return if a head may lead this experiment.

    Raises:
        UserError: it is a study, which the program leads that asks and tells.
        PermanentBackendError: it cannot be read.
    """
    if LED_BY_PROGRAM in folder.read_config():
        raise UserError(
            "this is a study: the program leads it that asks for trials and tells results",
            hint=f"go on in Python: {_opening(folder.path)}",
        )


def is_study(folder: Path) -> bool:
    """Whether a program leads, or led, the experiment in a folder. Raises nothing."""
    try:
        return LED_BY_PROGRAM in ExperimentFolder(folder).read_config()
    except PermanentBackendError:
        return False


def way_on(folder: Path) -> str:
    """How to go on with an experiment that nobody leads: a command, or a line of Python."""
    return _opening(folder) if is_study(folder) else f"bequeath resume {folder.name}"


def no_head(folder: Path) -> PassingBackendError:
    """The error of an experiment without a head: a study never has one."""
    if is_study(folder):
        return PassingBackendError(
            f"experiment {folder.name} is a study: only its own program can change it",
            hint=f"do it there, or go on in Python: {way_on(folder)}",
        )
    return PassingBackendError(
        f"experiment {folder.name} is not running",
        hint=f"take it up again with: {way_on(folder)}",
    )


def _opening(folder: Path) -> str:
    return f"bq.Study(folder={str(folder)!r})"
