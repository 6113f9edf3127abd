"""The files of attempts in the experiment's folder on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec.structs import replace

from dispatcher.experiment.references import resolve_environment
from dispatcher.folders.experiment_folder import run_folder
from dispatcher.folders.names import TRIALS
from dispatcher.platforms.files import LocalFiles, Whereabouts
from dispatcher.platforms.given import Given
from dispatcher.platforms.local.section import LocalServiceConfig
from trial_runtime.agent.dialects import dialect_of
from trial_runtime.agent.runners.environment import base_environment, resolve_references
from trial_runtime.checkpoints import folder_of


class FilesHere:
    """See :class:`dispatcher.platforms.worker_files.WorkerFiles`."""

    def __init__(self, given: Given[LocalServiceConfig]) -> None:
        self._given = given

    def of(self, trial: int, attempt: int, *, pid: int = 0) -> LocalFiles:
        """See :meth:`WorkerFiles.of`."""
        config = self._given.config
        above = str(self._given.folder / TRIALS / str(trial) / str(attempt))
        return LocalFiles(
            Whereabouts(
                config.experiment,
                trial,
                attempt,
                above,
                pid,
                work=f"{above}/work",
                checkpoints=folder_of(config.weights_root, config.experiment, trial),
                code=os.path.realpath(config.trial.code_directory),
                weights_root=config.weights_root,
                environment=self._environment,
            )
        )

    def _environment(self) -> Mapping[str, str]:
        config = replace(self._given.config, run_folder=str(run_folder(self._given.folder)))
        wanted = config.trial.environment
        resolve_environment(wanted)  # says which one leads nowhere
        return base_environment(config, dialect_of(config)) | resolve_references(wanted)

    def close(self) -> None:
        """Do nothing: nothing is open."""
