"""The place of an attempt's files by the experiment file: the one module that knows platforms."""

from __future__ import annotations

import os
from typing import Any

from dispatcher.attempt_files.attempt_at import AttemptAt, kept_here
from dispatcher.backends.files.here import LocalFiles
from dispatcher.backends.files.there import FileServer, SshFiles
from dispatcher.backends.files.whereabouts import Whereabouts
from dispatcher.backends.ssh import Machine, experiment_folder
from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.plugged import word_of
from dispatcher.experiment.references import resolve_environment
from dispatcher.experiment.snapshot import from_json
from dispatcher.experiment.weights_place import RootUrl
from dispatcher.folders.experiment_folder import ExperimentFolder, run_folder
from dispatcher.folders.ownership import demand_ours
from dispatcher.platforms.given import Given
from dispatcher.platforms.registry import platform_of
from dispatcher.ports import AttemptFiles
from dispatcher.wiring.agents import agent_config
from dispatcher.wiring.machines import LOCAL, Place, machine_of, packer, places
from dispatcher.wiring.weights import weights_root
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.runners.environment import base_environment, resolve_references
from trial_runtime.checkpoints import folder_of
from trial_runtime.endpoint import Endpoint


class ShowsNoFiles(PermanentBackendError):
    """Raised for a platform that does not show files."""


def files_of(folder: ExperimentFolder, attempt: AttemptAt, *, for_shell: bool) -> AttemptFiles:
    """See :func:`dispatcher.attempt_files.files_of`."""
    if for_shell:
        demand_ours(folder.path)
    config = from_json(folder.read_config(), str(folder.config))
    if attempt.is_here:
        return _local(config, folder, attempt, for_shell=for_shell)
    return WorkerFiles(config, folder, place_of(config, attempt)).of(attempt, for_shell=for_shell)


class WorkerFiles:
    """The files of all attempts on a worker of another machine; logged in to once. Thread: one.

    Raises:
        NotOurs: the experiment is somebody else's: its file would choose where our keys are tried.
    """

    def __init__(self, config: ExperimentConfig, folder: ExperimentFolder, place: Place) -> None:
        demand_ours(folder.path)
        self._config = config
        self._folder = folder
        self._place = place
        self._server: FileServer | None = None
        if place.machine is not None:
            self._server = FileServer(machine_of(place.worker, place.machine))

    def of(self, attempt: AttemptAt, *, for_shell: bool = False) -> AttemptFiles:
        """Return the files of one attempt. Raises as :func:`files_of` does."""
        server = self._server
        if server is None:
            return _plugged(self._config, self._folder, self._place, attempt)
        place = whereabouts(self._config, self._folder, server.machine, attempt, for_shell)
        return SshFiles(server, place)

    def close(self) -> None:
        """Log out; the next question logs in again."""
        if self._server is not None:
            self._server.close()


def _plugged(
    config: ExperimentConfig, folder: ExperimentFolder, place: Place, attempt: AttemptAt
) -> AttemptFiles:
    """Return the files of an attempt on a platform of another package."""
    platform = platform_of(place.service)
    given: Given[Any] = Given(
        place.worker,
        place.service,
        place.part,
        _agent_config(config, folder, place),
        folder.path,
        None,
        packer(config, folder),
        lambda: "",
        known=True,
    )
    files = platform.files(given, attempt.trial, attempt.number)
    if files is None:
        raise ShowsNoFiles(
            f"the platform {word_of(place.service)!r} shows no files of what runs there",
            hint="its own tools may",
            where=place.worker,
        )
    return files


def place_of(config: ExperimentConfig, attempt: AttemptAt) -> Place:
    """Find the place of an attempt's worker. Raises ``PermanentBackendError``."""
    for place in places(config):
        if place.worker == (attempt.worker or LOCAL):
            return place
    raise PermanentBackendError(
        f"attempt {attempt.name} ran on {attempt.worker}, which the experiment does not name",
        hint="what was fetched of it is in the experiment's folder",
    )


def whereabouts(
    config: ExperimentConfig,
    folder: ExperimentFolder,
    machine: Machine,
    attempt: AttemptAt,
    for_shell: bool = False,
) -> Whereabouts:
    """Return the paths and the environment of an attempt on a machine that is reached by SSH.

    Args:
        config: of the experiment.
        folder: its folder on this machine.
        machine: names the folders there.
        attempt: the attempt.
        for_shell: whether to look up the environment of trials.
    """
    work_folder = machine.work_folder
    experiment = experiment_folder(work_folder, folder.id, machine.name)
    above = f"{experiment}/trials/{attempt.trial}/{attempt.number}"
    root = machine.weights_root
    if isinstance(config.weights_root, RootUrl):  # views of a store, each worker's own
        root = f"{root}/{folder.id}/{machine.name}" if root else f"{experiment}/weights"
    root = root or str(weights_root(config, folder))
    environment: dict[str, str] = {}
    if for_shell:
        environment = resolve_environment(machine.environment)
        environment |= resolve_environment(config.trial_environment)
    return Whereabouts(
        folder.id,
        attempt.trial,
        attempt.number,
        above,
        attempt.pid,
        work=f"{above}/work",
        checkpoints=folder_of(root, folder.id, attempt.trial),
        weights_root=root,
        runtimes=f"{work_folder}/runtime",
        environment=environment,
    )


def _agent_config(config: ExperimentConfig, folder: ExperimentFolder, place: Place) -> AgentConfig:
    """Make the configuration of an agent there, without a head to reach."""
    sockets = run_folder(folder.path)
    return agent_config(config, place.service, folder, Endpoint(""), 0, sockets)


def _local(
    config: ExperimentConfig, folder: ExperimentFolder, attempt: AttemptAt, *, for_shell: bool
) -> LocalFiles:
    above = str(kept_here(folder, attempt))
    root = str(weights_root(config, folder))
    environment: dict[str, str] = {}
    if for_shell:
        agent = _agent_config(config, folder, place_of(config, attempt))
        environment = base_environment(agent) | resolve_references(agent.trial.environment)
    return LocalFiles(
        Whereabouts(
            folder.id,
            attempt.trial,
            attempt.number,
            above,
            attempt.pid,
            work=f"{above}/work",
            checkpoints=folder_of(root, folder.id, attempt.trial),
            code=os.path.realpath(config.trial_code_directory),
            weights_root=root,
            environment=environment,
        )
    )
