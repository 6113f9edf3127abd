"""From the experiment file to what trials need and workers are like: plain translations."""

from __future__ import annotations

from dispatcher.core.resources import Needs, WorkerRules
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.needs import OfferedResources, offered
from dispatcher.wiring.machines import Place, places


def needs_of(config: ExperimentConfig) -> Needs:
    """What each trial takes that brings no needs of its own."""
    told = config.trial_needs
    return Needs(
        gpus=told.trial_gpu_number or 0.0,
        gpu_memory_bytes=config.min_gpu_memory or 0,
        cpus=told.trial_cpu_number or 0.0,
        memory_bytes=told.trial_memory_size or 0,
        custom=tuple(sorted(told.trial_resources.items())),
        priority=config.priority,
    )


def worker_rules(config: ExperimentConfig) -> dict[str, WorkerRules]:
    """What the file says of workers, by their names; those of which it says nothing are left
    out."""
    found: dict[str, WorkerRules] = {}
    for place in places(config):
        has = offered(place.service, _part(place))
        rules = WorkerRules(
            cost=has.cost or 0.0,
            trials_per_device=has.max_trial_number_per_gpu or 0,
            domain=domain_of_place(place),
        )
        if rules != WorkerRules():
            found[place.worker] = rules
    return found


def _part(place: Place) -> OfferedResources | None:
    """What the file says of this worker alone."""
    return place.part if isinstance(place.part, OfferedResources) else None


def domain_of_place(place: Place) -> str:
    """The storage domain that the file puts a worker in; empty for the one without a name."""
    return offered(place.service, _part(place)).storage_domain or ""
