"""From the experiment file to what each process is told: plain translations, no decisions."""

from __future__ import annotations

import json
import os
from pathlib import Path

from dispatcher.core.settings import Settings, StallPolicy, TunerErrorPolicy
from dispatcher.experiment.config import AlgorithmConfig, ExperimentConfig
from dispatcher.experiment.references import resolve_environment
from dispatcher.experiment.services import Service
from dispatcher.experiment.weights_place import RootUrl
from dispatcher.folders import ExperimentFolder
from dispatcher.needs_wiring import needs_of, worker_rules
from dispatcher.remote_roots import check_references, remote_root
from dispatcher.tuner_host.config import AssessorSpec, TunerHostConfig
from dispatcher.weight_keeper import Policy
from trial_runtime.agent.config import AgentConfig, CacheSpec, TrialSpec
from trial_runtime.endpoint import Endpoint
from trial_runtime.mounts import named_on_network, network_type

#: Whatever one host writes it sees itself at once, also on a network file system: what is not
#: there now will not come, and a child that waits for it would hold its slot for nothing.
SAME_HOST_STALE_S = 1.0

#: What others write a host sees when its client of the network file system looks again: the
#: bound exceeds the longest of their usual cache times (60 s).
OTHER_HOSTS_STALE_S = 75.0


def settings_of(config: ExperimentConfig) -> Settings:
    """What the core needs of the file."""
    silent = config.on_trial_without_result
    return Settings(
        slots=config.trial_concurrency,
        lookahead=config.effective_lookahead,
        max_trials=config.max_trial_number,
        max_duration_s=config.max_experiment_duration,
        on_tuner_error=TunerErrorPolicy(config.on_tuner_error),
        on_stall=StallPolicy(config.on_stall),
        stall_timeout_s=config.stall_timeout,
        trial_retries=config.trial_retries,
        lost_retries=config.lost_retries,
        retry_backoff_s=config.retry_backoff,
        retries=config.retries.by_reason(),
        losses_at_once=True,
        max_failed_in_a_row=config.effective_max_failed_in_a_row,
        quarantine_after=config.quarantine_after,
        quarantine_pause_s=config.quarantine_pause,
        workers=worker_count(config),
        substitute_result=json.dumps(silent) if isinstance(silent, float) else None,
        silent_is_failure=silent == "fail",
        trial_stop_grace_s=config.trial_stop_grace,
        assess=config.assessor is not None,
        early_stop_keeps_result=config.assessor is not None and config.assessor.keep_result,
        needs=needs_of(config),
        worker_rules=worker_rules(config),
    )


def worker_count(config: ExperimentConfig) -> int:
    """On how many machines trials run."""
    return len(config.workers)


def weights_root(config: ExperimentConfig, folder: ExperimentFolder) -> Path:
    """Below which folder all weights of this experiment lie, or views of them are."""
    return config.weights_folder or folder.weights


def policy_of(config: ExperimentConfig) -> Policy:
    """Which weights are kept."""
    return Policy.of(config.retention.keep, config.retention.count)


def tuner_host_config(
    config: ExperimentConfig, folder: ExperimentFolder, endpoint: Endpoint, epoch: int
) -> TunerHostConfig:
    """What the tuner host is told."""
    tuner, assessor = config.tuner, config.assessor
    return TunerHostConfig(
        endpoint=endpoint,
        weights_root=str(weights_root(config, folder)),
        builtin=tuner.name or "",
        class_name=_class_name(tuner),
        file=str(tuner.file or ""),
        code_directory=str(tuner.code_directory or ""),
        class_args=tuner.class_args,
        assessor=None
        if assessor is None
        else AssessorSpec(
            class_name=_class_name(assessor),
            file=str(assessor.file or ""),
            code_directory=str(assessor.code_directory or ""),
            class_args=assessor.class_args,
            builtin=assessor.name or "",
        ),
        search_space=json.dumps(config.search_space),
        multi_thread=config.multi_thread,
        save_key=config.weight_keys.save if config.keeps_weights else "",
        restore_key=config.weight_keys.restore if config.keeps_weights else "",
        weights_read_roots=tuple(map(str, config.weights_read_roots)),
        max_parameters_bytes=config.limits.max_parameters_size,
        needs_key=config.needs_key,
        needs=needs_of(config),
        seed=config.seed,
        epoch=epoch,
        restore=str(folder.restore),
        log_level=config.log_level,
        nni=config.for_nni,
        experiment=folder.id,
        gpus=_gpus_of_the_tuner(config),
        optimize_mode=config.optimize_mode or "",
    )


def _gpus_of_the_tuner(config: ExperimentConfig) -> str | None:
    indices = config.tuner.gpu_indices
    if indices is None:
        return "" if config.for_nni else None
    return ",".join(map(str, indices))


def _class_name(algorithm: AlgorithmConfig) -> str:
    """``module:Class``, the bare class of a file, or nothing for a built-in one."""
    bare = algorithm.bare_class_name
    if bare is None:
        return ""
    return f"{algorithm.module}:{bare}" if algorithm.module else bare


def agent_config(
    config: ExperimentConfig,
    service: Service,
    folder: ExperimentFolder,
    endpoint: Endpoint,
    epoch: int,
    sockets: Path,
) -> AgentConfig:
    """What the agent on this machine is told; for one elsewhere, what does not depend on where.

    Raises:
        ExperimentFileError: a reference in ``trialEnvironment`` leads nowhere.
    """
    # A reference that leads nowhere is said now; values are looked up at each trial's start
    # by the agent, so that no secret is written down.
    resolve_environment(config.trial_environment, os.environ)
    check_references(config)
    remote = remote_root(config, folder.id)
    trial = TrialSpec(
        code_directory=str(config.trial_code_directory),
        command=config.trial_command,
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
        nni=config.for_nni,
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
        heartbeat_s=min(1.0, config.leases.alive),
        seed=config.seed or 0,
        experiment=folder.id,
        stale_timeout_s=SAME_HOST_STALE_S
        if worker_count(config) == 1 or remote is not None
        else OTHER_HOSTS_STALE_S,
        remote=remote,
        shared_stores=config.keeps_weights,
        cache=cache_of(config)
        if config.keeps_weights and _may_copy(config, weights_root(config, folder))
        else None,
    )


def _may_copy(config: ExperimentConfig, root: Path) -> bool:
    """Whether any host can want copies: not on one machine with weights on a disk of its own,
    where digests of files for nobody would only make saving slower."""
    always = config.weights_cache.when == "always" or isinstance(config.weights_root, RootUrl)
    if always or worker_count(config) > 1 or named_on_network(root):
        return True  # without touching the root, whose server may be away when a head starts
    return network_type(root) is not None


def cache_of(config: ExperimentConfig) -> CacheSpec | None:
    """Where hosts keep copies of parents' files; None if they keep none."""
    told = config.weights_cache
    if told.when == "off":
        return None
    return CacheSpec(told.size, told.directory or "", always=told.when == "always")
