"""Translates the experiment file into an agent's configuration, on any machine."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.plugged import file_platform_of
from dispatcher.experiment.references import resolve_environment
from dispatcher.experiment.services import Service
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.wiring.needs import agent_resources
from dispatcher.wiring.places import Place
from dispatcher.wiring.programs import command_of, program_of
from dispatcher.wiring.remote_roots import check_references, remote_root
from dispatcher.wiring.settings import worker_count
from dispatcher.wiring.weights import cache_of, may_copy, weights_root
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint

#: Whatever one host writes it sees itself at once, also on a network file system: what is not
#: there now will not come, and a child that waits for it would hold its slot for nothing.
SAME_HOST_STALE_S = 1.0

#: What others write a host sees when its client of the network file system looks again: the
#: bound exceeds the longest of their usual cache times (60 s).
OTHER_HOSTS_STALE_S = 75.0


#: Heartbeats that a head takes in each second, of all agents together, and about as many pings
#: that it sends: a message a second each way would cost it a quarter of a core with a thousand
#: agents, and tell nobody what is needed so soon.
MOST_BEATS = 250


def heartbeat_of(config: ExperimentConfig) -> float:
    """Return the seconds between two heartbeats of an agent: one, more for each of a crowd, and
    never more than the file allows (``leases.alive``)."""
    return min(config.leases.alive, max(1.0, worker_count(config) / MOST_BEATS))


def demand_references(config: ExperimentConfig) -> None:
    """Look up what references stand for, and forget it again: agents do so at each trial's start,
    so that no secret is written down.

    Raises:
        ExperimentFileError: a reference leads nowhere.
    """
    resolve_environment(config.trial_environment, os.environ)
    check_references(config)


def worker_config(
    config: ExperimentConfig,
    place: Place,
    folder: ExperimentFolder,
    endpoint: Endpoint,
    epoch: int,
    sockets: Path,
) -> AgentConfig:
    """The configuration that an agent of a worker would get on this machine.

    Args:
        config: the experiment file.
        place: the worker's.
        folder: the experiment's, on this machine.
        endpoint: address and keys of the head.
        epoch: that of the head.
        sockets: folder for the agent's run files, with a short path.
    """
    no_weights = ""
    if config.keeps_weights:
        no_weights = file_platform_of(place.service).no_weights(place.service, config)
    return replace(
        agent_config(config, place.service, folder, endpoint, epoch, sockets),
        worker=place.worker,
        slots=place.slots,
        resources=agent_resources(config, place),
        shared_stores=config.keeps_weights and not no_weights,
        no_weights=no_weights,
    )


def agent_config(
    config: ExperimentConfig,
    service: Service,
    folder: ExperimentFolder,
    endpoint: Endpoint,
    epoch: int,
    sockets: Path,
) -> AgentConfig:
    """The configuration of the agent on this machine; of other agents, the part that does not
    depend on the machine.

    Args:
        config: the experiment file.
        service: the section of the service that the agent's worker is of.
        folder: the experiment's, on this machine.
        endpoint: address and keys of the head.
        epoch: that of the head.
        sockets: folder for the agent's run files, with a short path.

    """
    remote = remote_root(config, folder.id)
    trial = TrialSpec(
        code_directory=str(config.trial_code_directory),
        command=command_of(config),
        function=config.trial_function,
        environment=config.trial_environment,
        timeout_s=config.max_trial_duration,
        stop_grace_s=config.trial_stop_grace,
        max_log_bytes=config.max_log_size,
        max_log_files=config.max_log_files,
        reuse=service.reuse_mode,
        preload=service.preload,
        max_trials_per_worker=service.max_trials_per_worker,
        cpus_per_trial=service.cpus_per_trial,
        max_metric_bytes=config.limits.max_metric_size,
        max_metrics=config.limits.max_metrics_per_trial,
        max_message_rate=config.limits.max_message_rate,
        own_folders=config.metrics is not None and config.metrics.file is not None,
        nni=config.for_nni,
        program=program_of(config),
    )
    return AgentConfig(
        worker="local",
        slots=service.slots or config.trial_concurrency,
        head=endpoint,
        epoch=epoch,
        run_folder=str(sockets),
        experiment_folder=str(folder.path),
        trial=trial,
        weights_root=str(weights_root(config, folder)),
        read_roots=tuple(map(str, config.weights_read_roots)),
        save_key=config.weight_keys.save if config.keeps_weights else "",
        restore_key=config.weight_keys.restore if config.keeps_weights else "",
        head_grace_s=config.head_grace,
        heartbeat_s=heartbeat_of(config),
        seed=config.seed or 0,
        experiment=folder.id,
        stale_timeout_s=SAME_HOST_STALE_S
        if worker_count(config) == 1 or remote is not None
        else OTHER_HOSTS_STALE_S,
        remote=remote,
        shared_stores=config.keeps_weights,
        nodes=config.trial_nodes,
        cache=cache_of(config)
        if config.keeps_weights and may_copy(config, weights_root(config, folder))
        else None,
    )
