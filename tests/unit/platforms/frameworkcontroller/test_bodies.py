"""What is sent for an allocation is what the definition of Frameworks takes, with its roles."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from pydantic import ValidationError

from dispatcher.platforms.allocations.allocation import LONGEST_NAME
from dispatcher.platforms.frameworkcontroller.frameworks import FRAMEWORK
from dispatcher.platforms.frameworkcontroller.section import FrameworkSection
from dispatcher.platforms.kubernetes.bodies import allocation_in, object_of
from dispatcher.platforms.kubernetes.roles import RolesDoNotFit
from tests.support.kubernetes.framework_controller import judge_of_frameworks
from tests.unit.platforms.kubernetes.test_bodies import EVERYTHING, order

CRD = judge_of_frameworks()

#: All that may stand in a section, but for what Frameworks do not have.
EVERYTHING_HERE = {key: value for key, value in EVERYTHING.items() if key != "queue"}

PS = {"name": "ps", "replicas": 1}
ROLES = {"roles": [{"name": "chief"}, PS, {"name": "worker"}]}


def section(**keys: Any) -> FrameworkSection:
    given = {"platform": "frameworkcontroller", "image": "img:1", **keys}
    return FrameworkSection.model_validate(given)


def framework_of(nodes: int = 1, **keys: Any) -> dict[str, Any]:
    return object_of(FRAMEWORK, order(nodes=nodes), section(**keys), "abc123-0a0b0c")


def roles_of(framework: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = framework["spec"]["taskRoles"]
    return found


def container_of(role: dict[str, Any]) -> dict[str, Any]:
    (container,) = role["task"]["pod"]["spec"]["containers"]
    found: dict[str, Any] = container
    return found


@pytest.mark.parametrize("nodes", [1, 5])
@pytest.mark.parametrize("more", [{}, EVERYTHING_HERE], ids=["least", "everything"])
@pytest.mark.parametrize("keys", [{}, ROLES], ids=["one", "roles"])
def test_the_definition_takes_them(keys: Any, more: Any, nodes: int) -> None:
    """And Kubernetes the pods in them, of which the definition says nothing."""
    framework = framework_of(nodes, **keys, **more)
    made, dropped = CRD.pruned(framework)
    assert CRD.complaints(framework) == []
    assert (dropped, CRD.complaints(made)) == ([], [])


def misspelt(framework: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    """A body, one of whose keys has lost a letter."""
    made = copy.deepcopy(framework)
    there: Any = made
    for key in path[:-1]:
        there = there[key]
    there[str(path[-1])[:-1]] = there.pop(path[-1])
    return made


ROLE = ("spec", "taskRoles", 0)


@pytest.mark.parametrize(
    "path",
    [
        ("kind",),
        ("spec",),
        ("metadata", "labels"),
        ("spec", "executionType"),
        ("spec", "retryPolicy", "maxRetryCount"),
        (*ROLE, "taskNumber"),
        (*ROLE, "frameworkAttemptCompletionPolicy", "minSucceededTaskCount"),
        (*ROLE, "task", "pod"),
        (*ROLE, "task", "pod", "spec", "enableServiceLinks"),
        (*ROLE, "task", "pod", "spec", "containers", 0, "terminationMessagePolicy"),
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_the_judge_refuses_a_misspelt_body(path: tuple[str | int, ...]) -> None:
    """Else it judges nothing."""
    framework = framework_of()
    assert CRD.complaints(framework) == []
    if path == ("spec",):  # of which the definition asks nothing at all
        assert CRD.pruned(misspelt(framework, path))[1] == ["spe"]
    assert CRD.complaints(misspelt(framework, path)) != []


@pytest.mark.parametrize(
    "path, value",
    [
        (("metadata", "name"), "with-dashes"),
        (("metadata", "name"), "a" * 64),
        (("spec", "executionType"), "Begin"),
        ((*ROLE, "name"), "a-b"),
        ((*ROLE, "taskNumber"), 10_001),
        ((*ROLE, "taskNumber"), "1"),
        ((*ROLE, "frameworkAttemptCompletionPolicy", "minFailedTaskCount"), -2),
    ],
)
def test_the_judge_refuses_values_that_the_definition_does_not_have(path: Any, value: Any) -> None:
    framework = framework_of()
    there: Any = framework
    for key in path[:-1]:
        there = there[key]
    there[path[-1]] = value
    assert CRD.complaints(framework) != []


def test_nothing_is_ever_started_twice_by_the_controller() -> None:
    """Mutation: a task is tried again by it, and an agent meets what the first one has left."""
    never = {"fancyRetryPolicy": False, "maxRetryCount": 0}
    framework = framework_of()
    (role,) = roles_of(framework)
    assert framework["spec"]["executionType"] == "Start"
    assert framework["spec"]["retryPolicy"] == role["task"]["retryPolicy"] == never
    assert role["task"]["pod"]["spec"]["restartPolicy"] == "Never"
    assert "podGracefulDeletionTimeoutSec" not in role["task"], "at most one instance of a task"
    assert (role["name"], role["taskNumber"]) == ("worker", 1)
    assert FRAMEWORK.first_pods(framework) == 1


def test_names_have_no_dashes_and_stay_apart() -> None:
    """The allocation's own name is a label. Mutation: dashes are left out, and nothing else: two
    workers have one Framework."""
    framework = framework_of()
    about = framework["metadata"]
    assert about["name"].isalnum()
    assert about["name"].startswith("abc1230a0b0ckubernetes21")
    assert about["labels"]["bequeath/allocation"] == order().name
    assert allocation_in(FRAMEWORK, framework) == order().name
    pod = {"metadata": {"labels": {"FC_FRAMEWORK_NAME": about["name"], **about["labels"]}}}
    assert allocation_in(FRAMEWORK, pod, of_pod=True) == order().name
    names = [FRAMEWORK.object_name(each) for each in ("lab-q-1-12", "lab-q-11-2")]
    assert len({*names}) == 2
    assert len(FRAMEWORK.object_name("a" * LONGEST_NAME)) <= 63


def parts(framework: dict[str, Any]) -> list[tuple[str, int, int, dict[str, str]]]:
    """Name, tasks, how many of them end the attempt well, and what their pods learn of it."""
    return [
        (
            role["name"],
            role["taskNumber"],
            role["frameworkAttemptCompletionPolicy"]["minSucceededTaskCount"],
            {x["name"]: x["value"] for x in container_of(role)["env"] if "value" in x},
        )
        for role in roles_of(framework)
    ]


def as_role(role: str, first: int) -> dict[str, str]:
    return {"BEQUEATH_ROLE": role, "BEQUEATH_RANK_OFFSET": str(first)}


def test_pods_of_one_trial_are_shared_out_in_the_order_of_the_file() -> None:
    """The first role speaks: its end ends the others. Mutation: servers, which never end, are
    waited for."""
    assert parts(framework_of(3)) == [("worker", 3, 3, as_role("worker", 0))]
    assert parts(framework_of(5, **ROLES)) == [
        ("chief", 1, 1, as_role("chief", 0)),
        ("ps", 1, -1, as_role("ps", 1)),
        ("worker", 3, -1, as_role("worker", 2)),
    ]
    several = {"roles": [{"name": "worker", "replicas": 2}, {"name": "ps", "replicas": 2}]}
    assert parts(framework_of(4, **several)) == [
        ("worker", 2, 2, as_role("worker", 0)),
        ("ps", 2, -1, as_role("ps", 2)),
    ]
    assert all(
        role["frameworkAttemptCompletionPolicy"]["minFailedTaskCount"] == 1
        for role in roles_of(framework_of(5, **ROLES))
    )
    assert FRAMEWORK.first_pods(framework_of(5, **ROLES)) == 5
    assert parts(framework_of(1, **ROLES)) == [("chief", 1, 1, {})], "as a probe is ordered"


def test_a_role_may_have_its_own_image_and_resources() -> None:
    given = {
        "limits": {"nvidia.com/gpu": 1},
        "roles": [{"name": "worker"}, {**PS, "image": "ps:1", "limits": {}}],
    }
    worker, server = (container_of(role) for role in roles_of(framework_of(3, **given)))
    assert (worker["image"], server["image"]) == ("img:1", "ps:1")
    assert worker["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert server["resources"]["limits"] == {}


def test_the_pod_of_rank_0_is_the_first() -> None:
    """For a shell beside a trial. Mutation: the first of any role is as good."""

    def pod(name: str, index: str, offset: int) -> dict[str, Any]:
        env = [{"name": "BEQUEATH_RANK_OFFSET", "value": str(offset)}]
        about = {"name": name, "annotations": {"FC_TASK_INDEX": index}}
        return {"metadata": about, "spec": {"containers": [{"name": "agent", "env": env}]}}

    pods = [pod("w1", "1", 2), pod("ps0", "0", 1), pod("chief", "0", 0), pod("w0", "0", 2)]
    ordered = sorted([*pods, {"metadata": {"name": "odd"}}], key=FRAMEWORK.rank_of)
    assert [each["metadata"]["name"] for each in ordered] == ["chief", "odd", "ps0", "w0", "w1"]


def test_secrets_are_in_the_secret_alone() -> None:
    assert "S3CRET" not in json.dumps(framework_of(3, **EVERYTHING_HERE))


@pytest.mark.parametrize(
    "nodes, roles, role",
    [
        (2, [{"name": "a", "replicas": 2}, {"name": "b"}], "a"),
        (3, [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 5}], "b"),
    ],
)
def test_roles_that_are_not_those_of_a_trial(nodes: int, roles: Any, role: str) -> None:
    with pytest.raises(RolesDoNotFit) as caught:
        section(roles=roles).roles_of(nodes)
    assert caught.value.role == role


BAD = {
    "a queue": ({"queue": "team"}, "has a 'queue', and Kueue knows no Frameworks"),
    "a dash": ({"roles": [{"name": "my-role"}]}, "whose names are lower-case letters and digits"),
    "no name": ({"roles": [{"replicas": 2}]}, "name"),
    "too long": ({"roles": [{"name": "a" * 64}]}, "at most 63"),
    "twice": ({"roles": [{"name": "a"}, {"name": "a"}]}, "names 'a' twice among 'roles'"),
    "promised too much": (
        {"limits": {"cpu": 1}, "roles": [{"name": "a", "requests": {"cpu": 2}}]},
        "has 2 of 'cpu'",
    ),
    "restarts": ({"pod": {"restartPolicy": "Always"}}, "has 'pod.restartPolicy', which bequeath"),
}


@pytest.mark.parametrize("keys, sentence", BAD.values(), ids=BAD.keys())
def test_what_does_not_fit_is_a_sentence(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        section(**keys)
    assert sentence in str(caught.value)


def test_the_kind_is_that_of_the_definition() -> None:
    assert (FRAMEWORK.resource.version, FRAMEWORK.resource.plural, FRAMEWORK.word) == (
        CRD.api_version, CRD.plural, CRD.word,
    )  # fmt: skip
