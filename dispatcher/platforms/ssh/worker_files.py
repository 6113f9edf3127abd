"""The files of all attempts on one machine, which is logged in to once."""

from __future__ import annotations

from collections.abc import Mapping

from dispatcher.experiment.references import resolve_environment
from dispatcher.platforms.files.whereabouts import Whereabouts
from dispatcher.platforms.ssh.files import FileServer, SshFiles
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.platforms.ssh.translation import experiment_folder
from trial_runtime.agent.config import AgentConfig
from trial_runtime.checkpoints import folder_of


class FilesThere:
    """See :class:`dispatcher.platforms.worker_files.WorkerFiles`.

    Args:
        machine: the one they lie on.
        config: the configuration that an agent on this machine would get.
    """

    def __init__(self, machine: Machine, config: AgentConfig) -> None:
        self._server = FileServer(machine)
        self._machine = machine
        self._config = config

    def of(self, trial: int, attempt: int, *, pid: int = 0) -> SshFiles:
        """See :meth:`WorkerFiles.of`; all share the login."""
        machine, config = self._machine, self._config
        experiment = experiment_folder(machine.work_folder, config.experiment, machine.name)
        above = f"{experiment}/trials/{trial}/{attempt}"
        root = machine.weights_root
        if config.remote is not None:  # views of a store, each worker's own
            root = f"{root}/{config.experiment}/{machine.name}" if root else f"{experiment}/weights"
        root = root or config.weights_root
        place = Whereabouts(
            config.experiment,
            trial,
            attempt,
            above,
            pid,
            work=f"{above}/work",
            checkpoints=folder_of(root, config.experiment, trial),
            weights_root=root,
            runtimes=f"{machine.work_folder}/runtime",
            environment=self._environment,
        )
        return SshFiles(self._server, place)

    def _environment(self) -> Mapping[str, str]:
        own = resolve_environment(self._machine.environment)
        return own | resolve_environment(self._config.trial.environment)

    def close(self) -> None:
        """Log out; the next question logs in again."""
        self._server.close()
