"""Translates the experiment file into the configuration of the tuner host."""

from __future__ import annotations

import json

from dispatcher.experiment.config import AlgorithmConfig, ExperimentConfig
from dispatcher.experiment.dialects import dialect_named
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.tuner_host.config import AssessorSpec, TunerHostConfig
from dispatcher.wiring.needs import needs_of
from dispatcher.wiring.weights import weights_root
from trial_runtime.endpoint import Endpoint


def tuner_host_config(
    config: ExperimentConfig, folder: ExperimentFolder, endpoint: Endpoint, epoch: int
) -> TunerHostConfig:
    """The configuration of the tuner host.

    Args:
        config: the experiment file.
        folder: the experiment's.
        endpoint: address and keys of the head.
        epoch: that of the head.
    """
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
        adapter=dialect_named(config.compatibility).tuner_adapter if config.for_nni else "",
        experiment=folder.id,
        gpus=_gpus_of_the_tuner(config),
        optimize_mode=config.optimize_mode or "",
        objectives=config.objectives,
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
