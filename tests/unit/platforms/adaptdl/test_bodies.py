"""What is sent for an allocation is what AdaptDL's definition and its webhook take."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from dispatcher.platforms.adaptdl.jobs import ADAPTDL_JOB
from dispatcher.platforms.adaptdl.section import AdaptdlSection
from dispatcher.platforms.kubernetes.bodies import object_of
from dispatcher.platforms.kubernetes.translation import order_there
from tests.support.kubernetes.adaptdl import judge_of_jobs
from tests.unit.platforms.kubernetes.test_bodies import EVERYTHING, order
from trial_runtime.agent.config import AgentConfig, ProbeQuestions, Renewal

CRD = judge_of_jobs()

#: All that may stand in a section, but for what AdaptDL has itself.
EVERYTHING_HERE = {k: v for k, v in EVERYTHING.items() if k not in ("queue", "sharedMemory")}


def section(**keys: Any) -> AdaptdlSection:
    return AdaptdlSection.model_validate({"platform": "adaptdl", "image": "img:1", **keys})


def job_of(nodes: int = 1, **keys: Any) -> dict[str, Any]:
    return object_of(ADAPTDL_JOB, order(nodes=nodes), section(**keys), "abc123-0a0b0c")


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("keys", [{}, EVERYTHING_HERE], ids=["least", "everything"])
def test_the_definition_takes_them(keys: Any, nodes: int) -> None:
    job = job_of(nodes, minReplicas=1, **keys)
    made, dropped = CRD.pruned(job)
    assert CRD.complaints(job) == []
    assert (dropped, CRD.complaints(made)) == ([], [])


def misspelt(job: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    """A body, one of whose keys has lost a letter."""
    made = copy.deepcopy(job)
    there: Any = made
    for key in path[:-1]:
        there = there[key]
    there[str(path[-1])[:-1]] = there.pop(path[-1])
    return made


@pytest.mark.parametrize(
    "path",
    [
        ("kind",),
        ("spec",),
        ("metadata", "labels"),
        ("spec", "template"),
        ("spec", "minReplicas"),
        ("spec", "preemptible"),
        ("spec", "template", "spec", "enableServiceLinks"),
        ("spec", "template", "spec", "containers", 0, "terminationMessagePolicy"),
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_the_judge_refuses_a_misspelt_body(path: tuple[str | int, ...]) -> None:
    """Else it judges nothing."""
    assert CRD.complaints(misspelt(job_of(), path)) != []


@pytest.mark.parametrize(
    "key, value", [("minReplicas", -1), ("maxReplicas", 0), ("minReplicas", 2)]
)
def test_the_judge_refuses_numbers_that_nobody_can_have(key: str, value: int) -> None:
    job = job_of()
    job["spec"][key] = value
    assert CRD.complaints(job) != []


def test_the_judge_refuses_another_spec() -> None:
    """A job cannot be changed, as the webhook has it: it is deleted."""
    job = job_of()
    assert CRD.complaints(job, job) == []
    other = {**job, "spec": {**job["spec"], "maxReplicas": 2}}
    assert CRD.complaints(other, job) == ["spec: updates to job spec are forbidden"]
    assert ADAPTDL_JOB.stopping is None


def numbers(job: dict[str, Any]) -> tuple[int, int, bool]:
    spec = job["spec"]
    return spec["minReplicas"], spec["maxReplicas"], spec["preemptible"]


def test_a_job_has_as_many_pods_as_a_trial() -> None:
    assert numbers(job_of()) == (1, 1, True)
    assert numbers(job_of(4)) == (4, 4, True)
    assert numbers(job_of(4, minReplicas=2, preemptible=False)) == (2, 4, False)
    assert numbers(job_of(1, minReplicas=2)) == (1, 1, True), "as a cluster is asked, dry"
    assert ADAPTDL_JOB.first_pods(job_of(4)) == 4


def test_all_pods_answer_a_probe() -> None:
    """Mutation: AdaptDL gives it fewer of them, and the answers of the others are waited for."""
    asked = order(nodes=4)
    config = replace(asked.config, probe=ProbeQuestions("a", (), (), ""))
    asked = dataclasses.replace(asked, config=config)
    job = object_of(ADAPTDL_JOB, asked, section(minReplicas=1), "s")
    assert numbers(job)[:2] == (4, 4)


def test_an_agent_learns_how_its_place_is_renewed() -> None:
    """Mutation: an agent that was asked to go leaves well, and AdaptDL calls the job done."""
    there = order_there(order(), section(), token="T").config
    assert there.renewal == Renewal("ADAPTDL_NUM_RESTARTS", "ADAPTDL_NUM_REPLICAS", 143)
    assert there.rank_variable == "ADAPTDL_REPLICA_RANK"
    assert there.trial.checkpoint_variable == "ADAPTDL_CHECKPOINT_PATH"


def config(nodes: int = 4) -> AgentConfig:
    return replace(order_there(order(), section(), token="T").config, nodes=nodes)


@pytest.mark.parametrize(
    "given, restarts, nodes",
    [
        ({}, 0, 4),
        ({"ADAPTDL_NUM_RESTARTS": "3", "ADAPTDL_NUM_REPLICAS": "2"}, 3, 2),
        ({"ADAPTDL_NUM_RESTARTS": "-1", "ADAPTDL_NUM_REPLICAS": "0"}, 0, 1),
        ({"ADAPTDL_NUM_RESTARTS": "", "ADAPTDL_NUM_REPLICAS": "many"}, 0, 4),
        ({"ADAPTDL_NUM_REPLICAS": "9"}, 0, 4),
    ],
)
def test_what_a_pod_is_told_of_its_group(given: Any, restarts: int, nodes: int) -> None:
    assert (config().restarts(given), config().nodes_now(given)) == (restarts, nodes)
    assert replace(config(), renewal=None).restarts(given) == 0
    assert replace(config(), renewal=None).nodes_now(given) == 4


def test_secrets_are_in_the_secret_alone() -> None:
    assert "S3CRET" not in json.dumps(job_of(3, **EVERYTHING_HERE))


BAD = {
    "a queue": ({"queue": "team"}, "has a 'queue', and Kueue knows no AdaptDLJobs"),
    "shared memory": ({"sharedMemory": "1Gi"}, "has what AdaptDL itself mounts in its pods"),
    "a volume in its place": (
        {"volumes": [{"at": "/dev/shm/", "claim": "a"}]},
        "has what AdaptDL itself mounts in its pods, at /dev/shm",
    ),
    "no pod": ({"minReplicas": 0}, "minReplicas"),
    "no truth": ({"preemptible": "perhaps"}, "preemptible"),
}


@pytest.mark.parametrize("keys, sentence", BAD.values(), ids=BAD.keys())
def test_what_does_not_fit_is_a_sentence(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        section(**keys)
    assert sentence in str(caught.value)


def test_the_kind_is_that_of_the_definition() -> None:
    assert (ADAPTDL_JOB.resource.version, ADAPTDL_JOB.resource.plural, ADAPTDL_JOB.word) == (
        CRD.api_version, CRD.plural, CRD.word,
    )  # fmt: skip
