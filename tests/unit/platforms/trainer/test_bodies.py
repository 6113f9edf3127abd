"""What is sent for an allocation is what the definition of TrainJobs takes, in each version."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.allocations.allocation import LONGEST_NAME as LONGEST_ALLOCATION
from dispatcher.platforms.kubernetes.bodies import allocation_in, object_of, secret_of
from dispatcher.platforms.trainer.fields import MANAGER, PodFields, fields_in
from dispatcher.platforms.trainer.kind import TRAIN_JOB, TrainJobKind
from dispatcher.platforms.trainer.section import TrainerSection
from tests.support.kubernetes.contract import complaints
from tests.support.kubernetes.crds import Crd
from tests.support.kubernetes.train_jobs import (
    pods_in,
    runtime,
    train_jobs,
    train_jobs_of_2_0,
    train_jobs_of_2_1,
)
from tests.support.kubernetes.trainer_controller import template_of
from tests.unit.platforms.kubernetes.test_bodies import order

NEW, OLD = train_jobs(), train_jobs_of_2_1()
CRDS = {"2.3": NEW, "2.1": OLD}

#: What both versions have a field for.
MUCH: dict[str, Any] = {
    "imagePullSecrets": ["registry"],
    "serviceAccount": "trials",
    "requests": {"cpu": 2, "memory": "8Gi"},
    "limits": {"cpu": 4.5, "memory": "16Gi", "nvidia.com/gpu": 1},
    "sharedMemory": "8Gi",
    "volumes": [
        {"claim": "weights", "at": "/weights/", "subPath": "a/b"},
        {"nfs": "[fd00::1]:/export", "at": "/data", "readOnly": True},
        {"scratch": "50Gi", "at": "/scratch"},
    ],
    "queue": "team",
    "nodeSelector": {"gpu": "a100"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "pod": {"affinity": {}, "schedulingGates": [{"name": "a"}]},
}

#: What came with 2.2, by the key.
LATER: dict[str, Any] = {
    "wallTime": {"wallTime": "1h"},
    "pod.securityContext": {"pod": {"securityContext": {"fsGroup": 1000}}},
    "container.securityContext": {"container": {"securityContext": {"runAsUser": 1000}}},
}


def section(**keys: Any) -> TrainerSection:
    usual = {"platform": "trainer", "image": "img:1", "runtimeRef": "of-agents"}
    return TrainerSection.model_validate({**usual, **keys})


def fields_of(crd: Crd) -> PodFields | None:
    (schema,) = crd.published.values()
    return fields_in(schema)


def kind_of(crd: Crd) -> TrainJobKind:
    found = fields_of(crd)
    assert found is not None
    return TrainJobKind(found)


def job_of(crd: Crd = NEW, nodes: int = 1, **keys: Any) -> dict[str, Any]:
    return object_of(kind_of(crd), order(nodes=nodes), section(**keys), "abc123-0a0b0c")


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    """The template of its pods, as the controller makes it of a runtime."""
    (of_agents,) = runtime()["spec"]["template"]["spec"]["replicatedJobs"]
    return template_of(job["spec"], of_agents)


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("keys", [{}, MUCH], ids=["least", "much"])
@pytest.mark.parametrize("version", list(CRDS))
def test_the_definition_takes_them(version: str, keys: Any, nodes: int) -> None:
    """Whole: nothing is dropped on the way."""
    crd, job = CRDS[version], job_of(CRDS[version], nodes, **keys)
    made, dropped = crd.pruned(job)
    assert crd.complaints(job) == []
    assert (dropped, crd.complaints(made)) == ([], [])
    about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert complaints("Pod", {**about, "spec": pod_of(job)["spec"]}) == []
    secret = secret_of(TRAIN_JOB, order(), "s", {"metadata": {"uid": "u1"}})
    assert complaints("Secret", secret) == []


def test_the_newest_one_has_all_fields() -> None:
    """Those that are taken for granted until a server was asked."""
    assert fields_of(NEW) == PodFields(
        container=frozenset({"env", "name", "securityContext", "volumeMounts"}),
        pod=PodFields().pod | {"initContainers"},
    )
    job = job_of(**MUCH | {"pod": {**MUCH["pod"], **LATER["pod.securityContext"]["pod"]}})
    assert NEW.complaints(job) == []
    assert pod_of(job)["spec"]["securityContext"] == {"fsGroup": 1000}


@pytest.mark.parametrize("key", list(LATER))
def test_what_a_version_lacks_is_said_with_its_key(key: str) -> None:
    """Mutation: it is left out without a word, or sent to a server that drops it."""
    assert NEW.complaints(job_of(NEW, **LATER[key])) == []
    with pytest.raises(PermanentBackendError) as refused:
        job_of(OLD, **LATER[key])
    assert f"'{key}'" in refused.value.message
    assert refused.value.hint
    words = [word for word, _ in TRAIN_JOB.key_words if word in refused.value.message.lower()]
    assert words, "the key is found by that"


def test_one_that_names_much() -> None:
    job = job_of(nodes=3, **MUCH, **LATER["wallTime"])
    spec = job["spec"]
    assert spec["runtimeRef"] == {
        "apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "of-agents",
    }  # fmt: skip
    assert (spec["suspend"], spec["activeDeadlineSeconds"]) == (True, 3600)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    trainer = spec["trainer"]
    assert (trainer["image"], trainer["numNodes"]) == ("img:1", 3)
    assert trainer["resourcesPerNode"]["limits"]["nvidia.com/gpu"] == "1"
    (patch,) = spec["runtimePatches"]
    assert patch["manager"] == MANAGER
    pod = pod_of(job)["spec"]
    assert pod["serviceAccountName"] == "trials"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["nodeSelector"] == {"gpu": "a100"}
    assert pod["terminationGracePeriodSeconds"] == 30


@pytest.mark.parametrize("version", list(CRDS))
def test_its_pods_have_the_agent_its_configuration_and_our_labels(version: str) -> None:
    """Mutations: the Secret is no volume of the container 'node'; arguments of the runtime follow
    our program; a runtime's variables, or its process for each GPU, wrap it."""
    job = job_of(CRDS[version])
    template = pod_of(job)
    (container,) = template["spec"]["containers"]
    assert container["command"] == ["python3"]
    assert container["args"] == ["-m", "trial_runtime.agent", "/run/bequeath/config"]
    assert "numProcPerNode" not in job["spec"]["trainer"], "its pods have one process anyway"
    (mount,) = (x for x in container["volumeMounts"] if x["mountPath"] == "/run/bequeath")
    (volume,) = (x for x in template["spec"]["volumes"] if x["name"] == mount["name"])
    assert volume["secret"]["secretName"] == order().name
    names = {each["name"] for each in container["env"]}
    assert {"TOKEN", "b.c"} <= names
    labels = template["metadata"]["labels"]
    assert labels["bequeath/service"] == "abc123-0a0b0c"
    assert template["metadata"]["annotations"] == {"sidecar.istio.io/inject": "false"}
    assert "S3CRET" not in json.dumps(job), "secrets are in the Secret only"


def test_the_pods_of_another_job_of_the_runtime_are_meant() -> None:
    kind = TrainJobKind(PodFields(job="workers"))
    job = object_of(kind, order(), section(), "s")
    assert [at for at, _ in pods_in(job["spec"])] == [(MANAGER, "workers")]


def test_a_version_without_a_way_to_pods_is_none() -> None:
    """Pods of 2.0 would have no label by which a head knows them."""
    assert fields_of(train_jobs_of_2_0()) is None
    assert fields_in({}) is None
    (schema,) = NEW.published.values()
    broken = json.loads(json.dumps(schema).replace('"volumeMounts"', '"mounts"'))
    assert fields_in(broken) is None


@pytest.mark.parametrize("name, made", [("abc-1", "abc-1"), ("1abc-1", "t-1abc-1")])
def test_names_begin_with_a_letter(name: str, made: str) -> None:
    """As the definition wants it; the name of the allocation is a label then."""
    job = object_of(TRAIN_JOB, replace(order(), name=name), section(), "s")
    assert job["metadata"]["name"] == made
    assert NEW.complaints(job) == []
    assert allocation_in(TRAIN_JOB, job) == name


def test_pods_of_the_longest_name_have_names() -> None:
    """JobSet refuses to make any that would have none. Two that begin alike stay apart. Mutation:
    the name of the allocation as it is, and a TrainJob that waits for ever."""
    longest = ["9" * LONGEST_ALLOCATION, "9" * (LONGEST_ALLOCATION - 1) + "8"]
    names = [TRAIN_JOB.object_name(each) for each in longest]
    assert len({*names}) == 2
    for name in names:
        assert re.fullmatch("[a-z][a-z0-9-]*[a-z0-9]", name)
        assert len(f"{name}-trainer-node-0-9-abcde") <= 63


# -- the judge -------------------------------------------------------------------------------------

PATCH = (
    "spec",
    "runtimePatches",
    0,
    "trainingRuntimeSpec",
    "template",
    "spec",
    "replicatedJobs",
    0,
)
POD = (*PATCH, "template", "spec", "template")


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
        ("metadata", "labels"),
        ("spec", "runtimeRef"),
        ("spec", "runtimeRef", "name"),
        ("spec", "trainer"),
        ("spec", "trainer", "numNodes"),
        ("spec", "trainer", "args"),
        ("spec", "runtimePatches"),
        PATCH[:4],
        (*PATCH, "name"),
        (*POD, "metadata", "labels"),
        (*POD, "spec", "volumes"),
        (*POD, "spec", "volumes", 0, "secret", "secretName"),
        (*POD, "spec", "terminationGracePeriodSeconds"),
        (*POD, "spec", "containers", 0, "volumeMounts"),
        (*POD, "spec", "containers", 0, "volumeMounts", 0, "mountPath"),
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_the_judge_refuses_a_misspelt_body(path: tuple[str | int, ...]) -> None:
    """Else it judges nothing."""
    assert NEW.complaints(misspelt(job_of(), path)) != []


@pytest.mark.parametrize("field", ["restartPolicy", "activeDeadlineSeconds", "priorityClassName"])
def test_what_is_the_runtimes_has_no_field(field: str) -> None:
    """By which it is known that it need not be sent."""
    job = job_of()
    ((_, pod),) = pods_in(job["spec"])
    pod["spec"][field] = 1
    assert NEW.complaints(job) != []
    assert NEW.pruned(job)[1] != []


CHANGES: dict[str, Any] = {
    "runtimeRef": lambda spec: spec["runtimeRef"].update(name="other"),
    "trainer": lambda spec: spec["trainer"].update(numNodes=2),
    "activeDeadlineSeconds": lambda spec: spec.update(activeDeadlineSeconds=7),
    "managedBy": lambda spec: spec.update(managedBy="kueue.x-k8s.io/multikueue"),
    "volumes": lambda spec: next(pods_in(spec))[1]["spec"]["volumes"].pop(),
    "containers": lambda spec: next(pods_in(spec))[1]["spec"]["containers"][0].update(env=[]),
}


@pytest.mark.parametrize("field", list(CHANGES))
def test_the_judge_knows_what_may_not_change(field: str) -> None:
    """As the rules of the definition say in CEL, which no schema runs."""
    job, _ = NEW.pruned(job_of(**LATER["wallTime"]))
    changed = copy.deepcopy(job)
    CHANGES[field](changed["spec"])
    (found,) = NEW.complaints(changed, before=job)
    assert field in found
    assert "immutable" in found


def test_the_judge_lets_a_queue_do_its_work() -> None:
    """It admits a TrainJob, and says where its pods go."""
    job, _ = NEW.pruned(job_of(queue="team"))
    changed = copy.deepcopy(job)
    changed["spec"]["suspend"] = False
    next(pods_in(changed["spec"]))[1]["spec"]["nodeSelector"] = {"flavour": "a"}
    other = copy.deepcopy(changed["spec"]["runtimePatches"][0])
    changed["spec"]["runtimePatches"].append({**other, "manager": "kueue.x-k8s.io/manager"})
    assert NEW.complaints(changed, before=job) == []


@pytest.mark.parametrize("name", ["1abc", "a" * 64, "a.b"])
def test_the_judge_knows_names(name: str) -> None:
    job = job_of()
    job["metadata"]["name"] = name
    assert NEW.complaints(job) != []


def test_the_judge_knows_what_is_reported() -> None:
    job = {**job_of(), "status": {"trainerStatus": {"progressPercentage": 3}}}
    assert "lastUpdatedTime" in NEW.complaints(job)[0]
