"""A cluster is looked over before anything is ordered; and nothing is left there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import BackendError
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.kubernetes import KUBERNETES
from dispatcher.platforms.kubernetes.jobs import JOB
from dispatcher.platforms.kubernetes.rights import rights_of, role_of
from tests.support.kubernetes import api_server
from tests.unit.platforms.kubernetes.test_bodies import section

Served = api_server.ApiServer


@pytest.fixture
def kubeconfig(there: Served, tmp_path: Path) -> str:
    return str(there.kubeconfig(tmp_path))


def found(kubeconfig: str, **keys: Any) -> dict[str, list[Finding]]:
    seen: dict[str, list[Finding]] = {}
    for each in KUBERNETES.inspect(section(kubeconfig=kubeconfig, **keys)):
        seen.setdefault(each.topic, []).append(each)
    return seen


def problems(seen: dict[str, list[Finding]]) -> Iterator[str]:
    for topic, each in seen.items():
        yield from (f"{topic}: {x.text}" for x in each if x.severity is Severity.PROBLEM)


def test_one_that_is_in_order(kubeconfig: str, there: Served, version: str) -> None:
    seen = found(kubeconfig)
    assert list(problems(seen)) == []
    assert f"v{version}" in seen["cluster"][0].text
    assert seen["rights"][0].severity is Severity.OK
    assert there.objects.all("jobs") == []


def test_rights_that_are_missing(kubeconfig: str, there: Served) -> None:
    there.denied |= {("delete", "jobs"), ("patch", "secrets"), ("list", "events")}
    seen = found(kubeconfig)
    assert list(problems(seen)) == ["rights: you may not delete jobs, patch secrets"]
    assert "list events" in seen["rights"][1].text
    assert "bequeath kubernetes rights" in seen["rights"][0].hint


def test_a_namespace_that_is_none(kubeconfig: str) -> None:
    seen = found(kubeconfig, namespace="nowhere")
    assert seen["job"][0].keys == (("namespace",),)
    (problem,) = (x for x in problems(seen) if "job" in x[:3])
    assert 'namespaces "nowhere" not found' in problem


def test_a_quota_without_room_is_a_note(kubeconfig: str, there: Served) -> None:
    there.objects.quota["jobs"] = 0
    (finding,) = found(kubeconfig)["job"]
    assert finding.severity is Severity.NOTE
    assert "exceeded quota" in finding.text


@pytest.mark.parametrize("version", ["1.36"])
def test_a_field_that_nobody_knows(kubeconfig: str) -> None:
    (finding,) = found(kubeconfig, pod={"hostNetwrok": True})["job"]
    assert finding.severity is Severity.NOTE
    assert "hostNetwrok" in finding.text


def test_claims(kubeconfig: str, there: Served) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "weights"},
        "spec": {"accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Bound"},
    }
    there.objects.create("persistentvolumeclaims", "trials", claim)
    volumes = [{"claim": "weights", "at": "/w"}, {"claim": "lost", "at": "/l"}]
    seen = found(kubeconfig, volumes=volumes)
    assert list(problems(seen)) == ["volumes: there is no PersistentVolumeClaim 'lost' in 'trials'"]
    assert seen["volumes"][1].keys == (("volumes", 1, "claim"),)
    assert seen["volumes"][0].severity is Severity.OK
    (first, _) = found(kubeconfig, volumes=volumes, allocations=2)["volumes"]
    assert first.severity is Severity.NOTE, "two pods cannot have it"


def test_what_no_node_has_is_said_before_a_pod_waits_for_it(kubeconfig: str, there: Served) -> None:
    """The server takes a Job that asks for it. Mutations: what two nodes have together counts; a
    node without the labels does."""
    gpus = {"limits": {"nvidia.com/gpu": 2}, "requests": {"cpu": "3500m"}}
    assert "nodes" not in found(kubeconfig, **gpus), "few may list nodes"
    there.nodes = [
        {
            "metadata": {"name": name, "labels": {"zone": name}},
            "status": {"allocatable": {"cpu": "4", "memory": "7Gi", "odd": "?", **more}},
        }
        for name, more in (("a", {"nvidia.com/gpu": "1"}), ("b", {"nvidia.com/gpu": "1"}))
    ]
    (finding,) = found(kubeconfig, **gpus)["nodes"]
    assert finding.severity is Severity.NOTE
    assert finding.text == (
        "no node has 2 of 'nvidia.com/gpu', 3500m of 'cpu': a pod waits until one comes"
    )
    assert finding.keys == (("limits", "nvidia.com/gpu"),)
    (finding,) = found(kubeconfig, requests={"odd": "1", "cpu": "4"})["nodes"]
    assert finding.keys == (("requests", "odd"),)
    there.nodes[1]["status"]["allocatable"]["nvidia.com/gpu"] = "2"
    (finding,) = found(kubeconfig, **gpus, nodeSelector={"zone": "b"})["nodes"]
    assert finding.severity is Severity.OK
    (finding,) = found(kubeconfig, **gpus, nodeSelector={"zone": "a"})["nodes"]
    assert finding.severity is Severity.NOTE
    (finding,) = found(kubeconfig, nodeSelector={"zone": "c"})["nodes"]
    assert (finding.severity, finding.keys) == (Severity.NOTE, (("nodeSelector",),))
    assert "nodes" not in found(kubeconfig), "nothing is asked for"


def test_a_cluster_that_does_not_know_us(kubeconfig: str, there: Served) -> None:
    there.tokens.clear()
    with pytest.raises(BackendError, match="Unauthorized"):
        found(kubeconfig)


@pytest.mark.parametrize("subject", ["alice", "lab:head"])
def test_the_role_gives_what_is_asked_for(subject: str) -> None:
    role, binding = role_of("trials", subject, [JOB])
    given = {
        (verb, plural)
        for rule in role["rules"]
        for plural in rule["resources"]
        for verb in rule["verbs"]
    }
    assert given == {(each.verb, each.kind.plural) for each in rights_of(JOB)}
    (who,) = binding["subjects"]
    assert who["name"] == subject.rpartition(":")[2]
    assert who["kind"] == ("ServiceAccount" if ":" in subject else "User")


@pytest.mark.parametrize(
    "subject, kind",
    [
        ("system:serviceaccount:lab:head", "ServiceAccount"),
        ("system:node:n1", "User"),
        ("oidc:me@example.org", "User"),
    ],
)
def test_users_may_have_colons(subject: str, kind: str) -> None:
    _, binding = role_of("trials", subject, [JOB])
    (given,) = binding["subjects"]
    assert given["kind"] == kind
    assert given["name"] == ("head" if kind == "ServiceAccount" else subject)


@pytest.mark.parametrize("subject", ["", ":", "lab:", ":head", "a b", "me\nkind: Group"])
def test_what_can_have_no_rights_is_refused(subject: str) -> None:
    with pytest.raises(ValueError, match="must be a user, or NAMESPACE:NAME"):
        list(role_of("trials", subject, [JOB]))
