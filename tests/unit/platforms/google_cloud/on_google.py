"""What tests of the two platforms have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from dispatcher.platforms.http_jobs.jobs import JobOrder
from tests.support.processes import wait_until
from tests.support.services.google import PlayedGoogle
from tests.support.services.played import Orders

#: Makes orders for a section with further keys.
Make = Callable[..., Orders]

ORDER = JobOrder(
    "abc-worker-1", "abc", "f" * 32, "exec true", experiment="Abc.7", worker="worker", wall_s=7200.0
)


def reaches(allocator: HttpJobsAllocator, name: str, wanted: AllocationState) -> Allocation:
    """Look until an allocation has a state."""
    last: list[Any] = [None]

    def look() -> bool:
        last[0] = next((each for each in allocator.look() if each.name == name), None)
        return last[0] is not None and last[0].state is wanted

    wait_until(look, f"{name} is {wanted}")
    made: Allocation = last[0]
    return made


def complaints(service: PlayedGoogle, body: Any) -> list[str]:
    """What the contract has against a job, by its schemas and by its texts."""
    path, _ = service.lists()
    return service.contracts["jobs"].request("POST", path, {}, body) or service.rules(body)


def file_of(folder: Path, keys: dict[str, Any], **experiment: Any) -> dict[str, Any]:
    """A file that has this section; a key that is ``...`` is left out."""
    (folder / "shared").mkdir(exist_ok=True)
    (folder / "token").write_text("t0ken")
    section = {
        "project": "lab-project-7",
        "region": "us-central1",
        "image": "us-docker.pkg.dev/lab/nas:1",
        "token": f"file:{folder / 'token'}",
        "mounts": {str(folder / "shared"): "/there"},
        "codeFolder": "/app",
        "headAddress": "127.0.0.1",
        **keys,
    }
    return {
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(folder),
        "trialConcurrency": 1,
        "weightsRoot": str(folder / "shared"),
        "trainingService": {key: value for key, value in section.items() if value is not ...},
        **experiment,
    }


def problems(folder: Path, keys: dict[str, Any], **experiment: Any) -> dict[str, str]:
    """What is wrong with a file that has this section, by the key."""
    try:
        build_experiment(file_of(folder, keys, **experiment))
    except ExperimentFileErrors as refused:
        return {
            each.where.rpartition(".")[2]: f"{each.message}; {each.hint}" for each in refused.errors
        }
    return {}
