"""Studies, which a program leads: no head may."""

from __future__ import annotations

from dispatcher.errors import UserError
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
            hint=f"go on in Python: bq.Study(folder={str(folder.path)!r})",
        )
