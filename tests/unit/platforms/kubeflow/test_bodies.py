"""What is sent for an allocation is what the operator's definitions take, with roles and ranks."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from dispatcher.platforms.allocations.allocation import LONGEST_NAME
from dispatcher.platforms.kubeflow.kinds import KINDS, TrainingJobKind
from dispatcher.platforms.kubeflow.section import ROLES, KubeflowSection
from dispatcher.platforms.kubernetes.bodies import allocation_in, object_of
from dispatcher.platforms.kubernetes.roles import RolesDoNotFit
from tests.support.kubernetes.contract import complaints
from tests.support.kubernetes.crds import Crd, published
from tests.unit.platforms.kubernetes.test_bodies import EVERYTHING, order

CRDS = {
    "PyTorchJob": published("kubeflow-v1", "pytorchjobs"),
    "TFJob": published("kubeflow-v1", "tfjobs"),
}
OF_TF = {"kind": "TFJob", "roles": [{"name": "chief"}, {"name": "ps", "replicas": 1}]}


def section(**keys: Any) -> KubeflowSection:
    return KubeflowSection.model_validate({"platform": "kubeflow", "image": "img:1", **keys})


def job_of(nodes: int = 1, **keys: Any) -> dict[str, Any]:
    given = section(**keys)
    return object_of(given.allocation_kind, order(nodes=nodes), given, "abc123-0a0b0c")


def specs_of(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"][KINDS[job["kind"]].specs]
    return found


def container_of(role: dict[str, Any]) -> dict[str, Any]:
    (container,) = role["template"]["spec"]["containers"]
    found: dict[str, Any] = container
    return found


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("more", [{}, EVERYTHING], ids=["least", "everything"])
@pytest.mark.parametrize("keys", [{}, {"kind": "TFJob"}, OF_TF], ids=["torch", "tf", "roles"])
def test_the_definition_takes_them(keys: Any, more: Any, nodes: int) -> None:
    job = job_of(nodes, **keys, **more)
    crd = CRDS[job["kind"]]
    made, dropped = crd.pruned(job)
    assert crd.complaints(job) == []
    assert (dropped, crd.complaints(made)) == ([], [])
    for role in specs_of(job).values():
        template = role["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "p"}}
        assert complaints("Pod", pod) == [], "and Kubernetes' own, as it is today"


def misspelt(job: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    """A body, one of whose keys has lost a letter."""
    made = copy.deepcopy(job)
    there: Any = made
    for key in path[:-1]:
        there = there[key]
    there[str(path[-1])[:-1]] = there.pop(path[-1])
    return made


MASTER = ("spec", "pytorchReplicaSpecs", "Master")


@pytest.mark.parametrize(
    "path",
    [
        ("kind",),
        ("spec",),
        ("metadata", "labels"),
        ("spec", "runPolicy"),
        ("spec", "runPolicy", "backoffLimit"),
        ("spec", "pytorchReplicaSpecs"),
        (*MASTER, "replicas"),
        (*MASTER, "template", "metadata", "labels"),
        (*MASTER, "template", "spec", "enableServiceLinks"),
        (*MASTER, "template", "spec", "containers", 0, "terminationMessagePolicy"),
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_the_judge_refuses_a_misspelt_body(path: tuple[str | int, ...]) -> None:
    """Else it judges nothing. A real server drops such a field."""
    job = misspelt(job_of(), path)
    assert CRDS["PyTorchJob"].complaints(job) != []
    if path[0] == "spec" and len(path) > 2:
        made, dropped = CRDS["PyTorchJob"].pruned(job)
        assert len(dropped) == 1
        assert dropped[0].endswith(str(path[-1])[:-1])
        assert str(path[-1])[:-1] not in json.dumps(made).split('"')


@pytest.mark.parametrize("value", ["1", 1.5, None, [1]])
def test_the_judge_refuses_values_of_another_kind(value: Any) -> None:
    job = job_of()
    job["spec"]["pytorchReplicaSpecs"]["Master"]["replicas"] = value
    (complaint,) = CRDS["PyTorchJob"].complaints(job)
    assert complaint.startswith("spec.pytorchReplicaSpecs.Master.replicas: ")


def test_a_judge_made_of_a_loose_definition_is_as_loose_as_that() -> None:
    """What a project leaves open stays open; nullable and either-or are read as they are meant."""
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}]},
                    "note": {"type": "string", "nullable": True, "enum": ["a"]},
                    "wait": {"type": "boolean", "default": False},
                },
            }
        },
    }
    names = {"kind": "Lake", "plural": "lakes"}
    version = {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd = Crd(
        {"spec": {"group": "x.y", "names": names, "versions": [version]}},
        rules=[lambda before, after: ["spec: it is for ever"] if before else []],
    )
    about = {"apiVersion": "x.y/v1", "kind": "Lake", "metadata": {"name": "a"}}
    spec = {"free": {"any": [1]}, "port": "http", "note": None}
    assert crd.complaints({**about, "spec": spec}) == []
    assert crd.complaints({**about, "spec": {"prot": 1}}) != []
    assert crd.complaints({**about, "spec": {"note": "b"}}) != []
    assert crd.complaints({**about, "spec": {}}, before={**about, "spec": {}}) != []
    made, dropped = crd.pruned({**about, "spec": {**spec, "prot": 1}})
    assert (made["spec"], dropped) == ({**spec, "wait": False}, ["spec.prot"])


@pytest.mark.parametrize("kind, container", [("PyTorchJob", "pytorch"), ("TFJob", "tensorflow")])
def test_nothing_is_ever_started_twice_by_the_operator(kind: str, container: str) -> None:
    job = job_of(kind=kind, runPolicy={"schedulingPolicy": {"queue": "q"}})
    assert job["spec"]["runPolicy"] == {
        "backoffLimit": 0,
        "cleanPodPolicy": "None",
        "ttlSecondsAfterFinished": 86400,
        "schedulingPolicy": {"queue": "q"},
    }
    (role,) = specs_of(job).values()
    assert (role["replicas"], role["restartPolicy"]) == (1, "Never")
    assert "restartPolicy" not in role["template"]["spec"], "the operator warns of it"
    assert container_of(role)["name"] == container
    assert role["template"]["metadata"]["annotations"] == {"sidecar.istio.io/inject": "false"}
    assert KINDS[kind].first_pods(job) == 1


def test_a_queue_admits_it() -> None:
    job = job_of(queue="team")
    assert job["spec"]["runPolicy"]["suspend"] is True
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"


def listed(given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, **keys} for name, keys in given.items()]


def roles(job: dict[str, Any]) -> list[tuple[str, int, dict[str, str]]]:
    """Name, replicas, and what pods of that role are told of it."""
    return [
        (
            name,
            role["replicas"],
            {x["name"]: x["value"] for x in container_of(role)["env"] if "value" in x},
        )
        for name, role in specs_of(job).items()
    ]


def as_role(name: str, replicas: int, first: int, word: str = "") -> tuple[Any, ...]:
    variables = {"BEQUEATH_ROLE": name, "BEQUEATH_RANK_OFFSET": str(first)}
    return word or name.capitalize(), replicas, variables


def test_pods_of_one_trial_are_shared_out_in_the_order_of_ranks() -> None:
    """Whoever decides how the job ends, for the operator, is rank 0. Mutation: a parameter server
    comes before the workers."""
    assert roles(job_of(4)) == [as_role("master", 1, 0), as_role("worker", 3, 1)]
    assert roles(job_of(4, kind="TFJob")) == [as_role("worker", 4, 0)]
    chief, server = as_role("chief", 1, 0), as_role("ps", 1, 3, "PS")
    assert roles(job_of(4, **OF_TF)) == [chief, as_role("worker", 2, 1), server]
    given = {"ps": {"replicas": 2}, "evaluator": {}, "worker": {"replicas": 1}}
    assert roles(job_of(4, kind="TFJob", roles=listed(given))) == [
        as_role("worker", 1, 0),
        as_role("ps", 2, 1, "PS"),
        as_role("evaluator", 1, 3),
    ]
    assert roles(job_of(2, **OF_TF)) == [chief, as_role("ps", 1, 1, "PS")]
    assert KINDS["TFJob"].first_pods(job_of(4, **OF_TF)) == 4
    assert roles(job_of(1, **OF_TF)) == [("Chief", 1, {})], "as a probe is ordered"


def test_each_pod_learns_its_number_from_the_operator() -> None:
    def sources(nodes: int) -> list[str]:
        (role, *_) = specs_of(job_of(nodes)).values()
        found = (x.get("valueFrom", {}).get("fieldRef") for x in container_of(role)["env"])
        return [each["fieldPath"] for each in found if each]

    assert sources(3) == [
        "status.podIP", "metadata.labels['training.kubeflow.org/replica-index']",
    ]  # fmt: skip
    assert sources(1) == []


def test_a_role_may_have_its_own_image_and_resources() -> None:
    given = {
        "limits": {"nvidia.com/gpu": 1},
        "requests": {"cpu": 8},
        "roles": listed({"ps": {"image": "ps:1", "limits": {}, "requests": {"cpu": 1}}}),
    }
    specs = specs_of(job_of(3, kind="TFJob", **given))
    worker, server = (container_of(specs[name]) for name in ("Worker", "PS"))
    assert (worker["image"], server["image"]) == ("img:1", "ps:1")
    assert worker["resources"] == {"requests": {"cpu": "8"}, "limits": {"nvidia.com/gpu": "1"}}
    assert server["resources"] == {"requests": {"cpu": "1"}, "limits": {}}


@pytest.mark.parametrize(
    "nodes, given, role, sentence",
    [
        (2, {"ps": {"replicas": 2}}, "ps", "leave no pod for 'worker': a trial has 2"),
        (2, {"ps": {"replicas": 5}}, "ps", "leave no pod for 'worker'"),
        (3, {"ps": {}, "worker": {"replicas": 5}}, "worker", "name 6 pods, and a trial has 3"),
        (3, {"chief": {}, "ps": {"replicas": 2}, "worker": {}}, "chief", "leave no pod"),
    ],
)
def test_roles_that_are_not_those_of_a_trial(
    nodes: int, given: Any, role: str, sentence: str
) -> None:
    with pytest.raises(RolesDoNotFit, match=sentence) as caught:
        section(kind="TFJob", roles=listed(given)).roles_of(nodes)
    assert caught.value.role == role


BAD = {
    "an operator of before": (
        {"apiVersion": "kubeflow.org/v1beta2"},
        "'kubeflow.org/v1beta2', which no operator serves",
    ),
    "an alpha": ({"apiVersion": "v1alpha2"}, "only kubeflow.org/v1 is spoken; leave it out"),
    "another kind": ({"kind": "MPIJob"}, "PyTorchJob"),
    "a role of the other kind": ({"roles": [{"name": "ps"}]}, "a PyTorchJob has master, worker"),
    "a role twice": ({"roles": [{"name": "worker"}, {"name": "worker"}]}, "'worker' twice"),
    "no role": ({"roles": [{"name": "boss"}]}, "boss"),
    "two masters": ({"roles": [{"name": "master", "replicas": 2}]}, "wants 2 of 'master'"),
    "promised too much": (
        {"limits": {"cpu": 1}, "roles": [{"name": "worker", "requests": {"cpu": 2}}]},
        "has 2 of 'cpu'",
    ),
    "half a GPU": (
        {"roles": [{"name": "worker", "limits": {"nvidia.com/gpu": 0.5}}]},
        "whole ones",
    ),
    "retries": ({"runPolicy": {"backoffLimit": 3}}, "has 'runPolicy.backoffLimit', which bequeath"),
    "no image": ({"roles": [{"name": "worker", "image": "a b"}]}, "must be an image"),
}


@pytest.mark.parametrize("keys, sentence", BAD.values(), ids=BAD.keys())
def test_what_does_not_fit_is_a_sentence(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        section(**keys)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("version", ["kubeflow.org/v1", "v1"])
def test_the_version_may_be_named(version: str) -> None:
    assert section(apiVersion=version).api_version == "kubeflow.org/v1"


def test_each_kind_has_its_roles() -> None:
    assert {word: tuple(kind.names) for word, kind in KINDS.items()} == ROLES
    assert {word: crd.word for word, crd in CRDS.items()} == {word: word for word in KINDS}
    for word, kind in KINDS.items():
        assert (kind.resource.version, kind.resource.plural) == (
            CRDS[word].api_version, CRDS[word].plural,
        )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_names_are_those_of_services(kind: TrainingJobKind) -> None:
    """The operator makes one for each pod, and its webhook refuses a job whose name begins with a
    digit, as experiments like '3d-unet' have it. Mutation: the name of the allocation."""
    assert kind.object_name("unet-0a0b0c-kubeflow-1") == "unet-0a0b0c-kubeflow-1"
    longest = ["3" * LONGEST_NAME, "3" * (LONGEST_NAME - 1) + "4", "a-" * (LONGEST_NAME // 2)]
    names = [kind.object_name(each) for each in ("3d-unet-0a0b0c-1", *longest)]
    assert len({*names}) == 4
    for name in names:
        assert re.fullmatch("[a-z][a-z0-9-]*[a-z0-9]", name)
        assert max(len(f"{name}-{role.lower()}-99") for role in kind.names.values()) <= 63
    given = section(kind=kind.word)
    job = object_of(kind, replace(order(), name="3d-unet-0a0b0c-1"), given, "3d-unet-0a0b0c")
    assert allocation_in(kind, job) == "3d-unet-0a0b0c-1"
