"""Jobs of AI Platform Training as the contract has them; a misspelt one is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PassingBackendError
from dispatcher.http_services.errors import Invalid
from dispatcher.platforms.aiplatform import jobs as module
from dispatcher.platforms.aiplatform.jobs import AiTrainingJobs, body_of, id_of
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from tests.support.processes import wait_until
from tests.support.services.google import AI_PLATFORM, PlayedAiPlatform
from tests.support.services.machines import OUT_OF_MEMORY, PREEMPTED, STOPPED, WALL_TIME
from tests.support.services.played import Orders, whole_section
from tests.unit.platforms.google_cloud.on_google import ORDER, Make, complaints, reaches


@pytest.fixture
def served(tmp_path: Path) -> Iterator[PlayedAiPlatform]:
    with AI_PLATFORM.serving(tmp_path, 4) as service:
        assert isinstance(service, PlayedAiPlatform)
        yield service


@pytest.fixture
def make(served: PlayedAiPlatform, tmp_path: Path) -> Make:
    def orders(**keys: Any) -> Orders:
        section = whole_section(AI_PLATFORM, served, tmp_path, **keys)
        given = {key: value for key, value in section.items() if value is not ...}
        return Orders(given, tmp_path)

    return orders


@pytest.fixture
def orders(make: Make) -> Orders:
    return make()


@pytest.fixture
def allocator(orders: Orders) -> Iterator[HttpJobsAllocator]:
    made = orders.allocator()
    yield made
    made.close()


def test_a_job_as_the_contract_has_it(make: Make, served: PlayedAiPlatform) -> None:
    orders = make(
        scaleTier=...,
        masterType="n1-standard-8",
        acceleratorType="NVIDIA_TESLA_T4",
        acceleratorCount=2,
        bootDiskSizeGb=200,
        jobDir="gs://outputs/nas",
        serviceAccount="nas@lab.iam.gserviceaccount.com",
        network="projects/12345/global/networks/lab",
        labels={"team": "nas"},
    )
    body = body_of(replace(ORDER, nodes=3), ["sh", "-c", "exec true"], orders.service)
    assert complaints(served, body) == []
    config = {
        "imageUri": "us-docker.pkg.dev/lab/nas:1",
        "containerCommand": ["sh", "-c", "exec true"],
        "acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": "2"},
        "diskConfig": {"bootDiskSizeGb": 200},
    }
    assert body == {
        "jobId": "bq_abc_worker_1",
        "labels": {
            "team": "nas",
            "bequeath-attempt": "abc-worker-1",
            "bequeath-service": "abc",
            "bequeath-experiment": "abc-7",
            "bequeath-mark": "f" * 32,
        },
        "trainingInput": {
            "scaleTier": "CUSTOM",
            "masterType": "n1-standard-8",
            "masterConfig": config,
            "workerType": "n1-standard-8",
            "workerCount": "2",
            "workerConfig": config,
            "region": "us-central1",
            "scheduling": {"maxRunningTime": "7200s"},
            "jobDir": "gs://outputs/nas",
            "serviceAccount": "nas@lab.iam.gserviceaccount.com",
            "network": "projects/12345/global/networks/lab",
        },
    }


@pytest.mark.parametrize("tier, machine, gpus", [
    ("basic", "n1-standard-4", 0), ("BASIC_GPU", "n1-standard-8", 1),
])  # fmt: skip
def test_a_tier_is_the_machine_that_it_stands_for(
    tier: str, machine: str, gpus: int, make: Make, served: PlayedAiPlatform
) -> None:
    orders = make(scaleTier=tier)
    body = body_of(ORDER, ["true"], orders.service)
    assert complaints(served, body) == []
    assert body["trainingInput"]["scaleTier"] == "CUSTOM"
    assert body["trainingInput"]["masterType"] == machine
    assert orders.service.gpus_asked == gpus


MISSPELT: dict[str, Callable[[dict[str, Any]], object]] = {
    "of a job": lambda body: body.update(jobid="x"),
    "of its input": lambda body: body["trainingInput"].update(mastertype="x"),
    "of a machine": lambda body: body["trainingInput"]["masterConfig"].update(image="x"),
    "of the scheduling": lambda body: body["trainingInput"]["scheduling"].update(time="1s"),
    "a count that is a number": lambda body: body["trainingInput"].update(workerCount=1),
    "a tier that is none": lambda body: body["trainingInput"].update(scaleTier="HUGE"),
    "a missing region": lambda body: body["trainingInput"].pop("region"),
    "a missing machine": lambda body: body["trainingInput"].pop("masterType"),
    "a runtime beside an image": lambda body: body["trainingInput"].update(runtimeVersion="2.11"),
    "an id with a dash": lambda body: body.update(jobId="bq-abc"),
    "an id that is too long": lambda body: body.update(jobId="b" * 129),
}


@pytest.mark.parametrize("what", MISSPELT)
def test_a_misspelt_job_is_refused(
    what: str, orders: Orders, served: PlayedAiPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the judge judges nothing, and neither do the tests that it presides."""
    body = copy.deepcopy(body_of(ORDER, ["true"], orders.service))
    MISSPELT[what](body)
    monkeypatch.setattr(module, "body_of", lambda *_: body)
    jobs = AiTrainingJobs(orders.service, "abc")
    with pytest.raises(Invalid):
        jobs.create(ORDER)
    assert served.misspelt
    served.misspelt.clear()
    assert served.machines.jobs == {}
    jobs.close()


def test_ids_are_letters_digits_and_underscores() -> None:
    """One for each name: a name has no ``_``."""
    assert id_of("0abc-0dd0dd-worker-x-12") == "bq_0abc_0dd0dd_worker_x_12"


def test_an_id_is_never_free_again(orders: Orders, served: PlayedAiPlatform) -> None:
    """Even when the job is gone: nobody waits for one that cannot be had for ever. Mutation: that
    it exists is success."""
    allocator = orders.allocator()
    order = orders.order()
    allocator.submit(order)
    served.delete(order.name)
    with pytest.raises(PassingBackendError, match="keep names for good"):
        orders.allocator().submit(order)
    allocator.close()


ENDS = [
    ("", Gone.FAILED, "exited with a non-zero status of 143"),
    (PREEMPTED, Gone.PREEMPTED, "preempted"),
    (OUT_OF_MEMORY, Gone.OUT_OF_MEMORY, "ran out-of-memory"),
    (WALL_TIME, Gone.WALL_TIME, "maximum running time"),
    (STOPPED, Gone.CANCELLED, ""),
]


@pytest.mark.parametrize("cause, gone, reason", ENDS)
def test_how_one_ended_is_known(
    cause: str,
    gone: Gone,
    reason: str,
    allocator: HttpJobsAllocator,
    orders: Orders,
    served: PlayedAiPlatform,
) -> None:
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    served.machines.stop(served.ids(order.name)[0], cause, 5.0)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert ended.gone is gone
    assert reason in ended.reason


def test_one_that_waits_says_its_place(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedAiPlatform
) -> None:
    served.machines.places, served.position = 0, 3
    order = orders.order()
    allocator.submit(order)
    waits = reaches(allocator, order.name, AllocationState.WAITING)
    assert waits.reason == "it has place 3 in the queue"


def test_nodes_know_their_ranks(orders: Orders, served: PlayedAiPlatform) -> None:
    jobs = AiTrainingJobs(orders.service, "abc")
    jobs.create(replace(ORDER, script='echo "rank $BEQUEATH_RANK"', nodes=3))
    wait_until(lambda: served.job(ORDER.name).ended is not None, "all have ended")
    assert sorted(jobs.output(ORDER.name).splitlines()) == ["rank 0", "rank 1", "rank 2"]
    jobs.close()
