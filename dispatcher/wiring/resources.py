"""Translates the experiment file into the resources that an agent offers; decides nothing."""

from __future__ import annotations

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.wiring.needs import offered_at
from dispatcher.wiring.places import Place
from trial_runtime.agent.config import ResourcesConfig


def agent_resources(config: ExperimentConfig, place: Place) -> ResourcesConfig:
    """The part of an agent's configuration about devices and other resources.

    GPUs count where the file says what trials need of them, or what machines give: ``0`` is an
    answer, too, and hides them. Without any of that trials see what there is. The file's own
    ``minGpuMemory`` is what a GPU must have in all, which the core counts; that of a machine is
    what must be free, which only its agent sees.
    """
    has = offered_at(place)
    wanted = config.trial_needs.trial_gpu_number
    given = (has.gpu_indices, has.max_trial_number_per_gpu, has.use_active_gpu, has.min_gpu_memory)
    return ResourcesConfig(
        count_gpus=wanted is not None or any(each is not None for each in given),
        must_have_gpus=bool(wanted),
        gpu_indices=has.gpu_indices,
        use_active_gpu=bool(has.use_active_gpu),
        min_gpu_memory=has.min_gpu_memory or 0,
        trials_per_gpu=has.max_trial_number_per_gpu or 0,
        custom=dict(has.resources),
    )
