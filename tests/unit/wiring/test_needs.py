"""From the file to what an agent may lend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.needs import OfferedResources
from dispatcher.wiring.needs import agent_resources
from dispatcher.wiring.places import Place, places
from trial_runtime.agent.config import ResourcesConfig

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code is not all that this repository holds."""
    monkeypatch.chdir(tmp_path)


def told(service: dict[str, Any] | None = None, **keys: Any) -> list[ResourcesConfig]:
    config = build_experiment(
        {
            "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
            "tuner": {"name": "random"},
            "trialCommand": "true",
            "trialCodeDirectory": ".",
            "trialConcurrency": 1,
            "trainingService": {"platform": "local", **(service or {})},
            **keys,
        }
    )
    return [agent_resources(config, place) for place in places(config)]


def test_a_file_that_says_nothing_of_gpus_counts_none() -> None:
    assert told() == [ResourcesConfig()]
    assert told({"resources": {"licence": 2}}) == [ResourcesConfig(custom={"licence": 2.0})]


@pytest.mark.parametrize(
    "service",
    [{"gpuIndices": [0]}, {"maxTrialNumberPerGpu": 2}, {"useActiveGpu": False},
     {"minGpuMemory": "1 GiB"}],
)  # fmt: skip
def test_whatever_it_says_of_them_makes_them_count(service: dict[str, Any]) -> None:
    (one,) = told(service)
    assert (one.count_gpus, one.must_have_gpus) == (True, False)


def test_zero_hides_them_and_more_needs_them() -> None:
    (hidden,) = told(trialGpuNumber=0)
    assert (hidden.count_gpus, hidden.must_have_gpus) == (True, False)
    (needed,) = told({"gpuIndices": "1,0", "minGpuMemory": "2 GiB"}, trialGpuNumber=0.5)
    assert (needed.count_gpus, needed.must_have_gpus) == (True, True)
    assert (needed.gpu_indices, needed.min_gpu_memory) == ((1, 0), 2 * GIB)


def test_memory_in_all_is_counted_by_the_core_alone() -> None:
    (one,) = told(trialGpuNumber=1, minGpuMemory="40 GiB")
    assert one.min_gpu_memory == 0


def test_the_section_of_a_worker_of_another_package_is_heard(tmp_path: Path) -> None:
    """Mutation: only machines of ours have resources of their own."""
    config = build_experiment(
        {
            "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
            "tuner": {"name": "random"},
            "trialCommand": "true",
            "trialCodeDirectory": str(tmp_path),
            "trialConcurrency": 1,
        }
    )
    theirs = Place("theirs", config.services[0], 1, OfferedResources(gpu_indices=(1,)))
    assert agent_resources(config, theirs).gpu_indices == (1,)


def test_a_machine_may_say_another_thing_than_its_service() -> None:
    machines = [{"host": "a"}, {"host": "b", "gpuIndices": [3], "maxTrialNumberPerGpu": 4}]
    service = {"platform": "ssh", "machineList": machines, "gpuIndices": [0]}
    first, second = told(service, trialGpuNumber=1)
    assert (first.gpu_indices, first.trials_per_gpu) == ((0,), 0)
    assert (second.gpu_indices, second.trials_per_gpu) == ((3,), 4)
