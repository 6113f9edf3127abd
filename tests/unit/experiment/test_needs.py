"""What trials need and machines give: NNI's places and spellings, and what the core is told."""

from __future__ import annotations

from typing import Any

from dispatcher.core.resources import A_SLOT, Needs, WorkerRules
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.wiring.settings import settings_of


def test_a_file_that_says_nothing_needs_a_slot(good: dict[str, Any]) -> None:
    settings = settings_of(build_experiment(good))
    assert (settings.needs, settings.worker_rules) == (A_SLOT, {})


def test_what_the_core_is_told(good: dict[str, Any]) -> None:
    file = good | {
        "trialGpuNumber": 0.5,
        "trialCpuNumber": 2,
        "trialMemorySize": "1gb",
        "trialResources": {"tape": 1, "licence": 2.5},
        "trainingService": {"platform": "local", "resources": {"tape": 1, "licence": 5}},
        "minGpuMemory": "16gb",
        "priority": 3,
    }
    custom = (("licence", 2.5), ("tape", 1.0))
    assert settings_of(build_experiment(file)).needs == Needs(
        0.5, 16 << 30, 2.0, 1 << 30, custom, 3
    )


def test_nnis_places_and_spellings_mean_the_same(good: dict[str, Any]) -> None:
    """Mutation: what stands below a service is not looked at."""
    theirs = {"platform": "local", "trialGpuNumber": 2, "useActiveGpu": False}
    theirs |= {"gpuIndices": "0, 2", "maxTrialNumPerGpu": 3}
    ours = {"platform": "local", "use_active_gpu": "no", "gpu_indices": [0, 2]}
    ours |= {"max_trial_number_per_gpu": 3}
    one = build_experiment(good | {"trainingService": theirs})
    two = build_experiment(good | {"trainingService": ours, "trialGpuNumber": 2})
    assert settings_of(one) == settings_of(two)
    assert settings_of(one).needs == Needs(gpus=2.0)
    assert settings_of(one).worker_rules == {"local": WorkerRules(trials_per_device=3)}
    assert (one.services[0].gpu_indices, one.services[0].use_active_gpu) == ((0, 2), False)


def test_a_machine_differs_from_its_service(good: dict[str, Any]) -> None:
    service = {
        "platform": "ssh",
        "cost": 2,
        "storageDomain": "lab",
        "resources": {"tape": 1},
        "machineList": [
            {"host": "a"},
            {"host": "b", "cost": 0.5, "storageDomain": "b", "resources": {"disk": 2}},
        ],
    }
    config = build_experiment(good | {"trainingService": [{"platform": "local"}, service]})
    assert settings_of(config).worker_rules == {
        "a": WorkerRules(cost=2.0, domain="lab"),
        "b": WorkerRules(cost=0.5, domain="b"),
    }


def test_the_record_gives_back_the_same(good: dict[str, Any]) -> None:
    service = {"gpuIndices": 3, "cost": 1, "resources": {"tape": 1}}
    file = good | {"trialResources": {"tape": 1}, "trainingService": service}
    config = build_experiment(file)
    assert from_json(to_json(config)) == config
