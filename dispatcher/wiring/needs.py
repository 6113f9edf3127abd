"""Translates the experiment file into needs of trials, rules of workers and resources of agents."""

from __future__ import annotations

from dispatcher.core.resources import Needs, WorkerRules
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.needs import OfferedResources, offered
from dispatcher.experiment.plugged import file_platform_of
from dispatcher.wiring.places import Place, places
from trial_runtime.agent.config import ResourcesConfig


def needs_of(config: ExperimentConfig) -> Needs:
    """The needs of a trial that brings none of its own."""
    needs = config.trial_needs
    return Needs(
        gpus=needs.trial_gpu_number or 0.0,
        gpu_memory_bytes=config.min_gpu_memory or 0,
        cpus=needs.trial_cpu_number or 0.0,
        memory_bytes=needs.trial_memory_size or 0,
        custom=tuple(sorted(needs.trial_resources.items())),
        priority=config.priority,
    )


def worker_rules(config: ExperimentConfig) -> dict[str, WorkerRules]:
    """The rules of workers, by their names; workers without any are left out."""
    by_worker: dict[str, WorkerRules] = {}
    for place in places(config):
        has = offered_at(place)
        rules = WorkerRules(
            cost=has.cost or 0.0,
            trials_per_device=has.max_trial_number_per_gpu or 0,
            domain=domain_of_place(place),
            trials_per_place=place.service.trials_per_place,
        )
        if rules != WorkerRules():
            by_worker[place.worker] = rules
    return by_worker


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


def offered_at(place: Place) -> OfferedResources:
    """The resources that the file gives one worker: in its own section, else in its service's."""
    own = place.part if isinstance(place.part, OfferedResources) else None
    return offered(place.service, own)


def domain_of_place(place: Place) -> str:
    """The storage domain that the file puts a worker in; empty for the one without a name."""
    return file_platform_of(place.service).storage_domain(place.service, place.part)
