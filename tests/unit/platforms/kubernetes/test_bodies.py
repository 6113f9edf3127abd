"""What is sent for an allocation is what the contract takes, on both versions, with no secret."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import pytest
from pydantic import ValidationError

from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.kubernetes.bodies import object_of, secret_of, ticket_of
from dispatcher.platforms.kubernetes.jobs import JOB
from dispatcher.platforms.kubernetes.section import KubernetesSection, amount
from tests.support.kubernetes.contract import complaints, pruned
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint


def section(**keys: Any) -> KubernetesSection:
    return KubernetesSection.model_validate({"platform": "kubernetes", "image": "img:1", **keys})


def order(**more: Any) -> AllocationOrder:
    config = AgentConfig(
        worker=more.pop("worker", "kubernetes-2"),
        slots=1,
        head=Endpoint("tcp://10.0.0.9:4000", "w", secret_key="S3CRET-KEY"),
        epoch=1,
        run_folder="",
        experiment_folder="/x",
        trial=TrialSpec("/code", command="true", stop_grace_s=more.pop("grace_s", 10.0)),
        weights_root="/weights",
        experiment=more.pop("experiment", "abc123"),
        ticket="S3CRET-TICKET",
    )
    variables = {"TOKEN": "S3CRET-VALUE", "b.c": "2"}
    return AllocationOrder(
        "abc123-0a0b0c-kubernetes-2-1", config, ("-m", "trial_runtime.agent"), variables, **more
    )


def job_of(*given: Any) -> dict[str, Any]:
    return object_of(JOB, *given)


EVERYTHING: dict[str, Any] = {
    "imagePullSecrets": ["registry"],
    "imagePullPolicy": "always",
    "serviceAccount": "trials",
    "requests": {"cpu": 2, "memory": "8Gi"},
    "limits": {"cpu": 4.5, "memory": "16Gi", "nvidia.com/gpu": 1},
    "sharedMemory": "8Gi",
    "volumes": [
        {"claim": "weights", "at": "/weights/", "subPath": "a/b"},
        {"nfs": "[fd00::1]:/export", "at": "/data", "readOnly": True},
        {"hostPath": "/mnt/fast", "at": "/fast"},
        {"scratch": "50Gi", "at": "/scratch"},
    ],
    "wallTime": "1h",
    "queue": "team",
    "priorityClass": "low",
    "nodeSelector": {"gpu": "a100"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "pod": {"securityContext": {"fsGroup": 1000}, "hostNetwork": True},
    "container": {"securityContext": {"runAsUser": 1000}},
}


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("keys", [{}, EVERYTHING], ids=["least", "everything"])
def test_the_contract_takes_them(keys: dict[str, Any], nodes: int) -> None:
    job = job_of(order(nodes=nodes), section(**keys), "abc123-0a0b0c")
    made = {**job, "metadata": {**job["metadata"], "uid": "u1"}}
    assert complaints("Job", job) == []
    assert complaints("Secret", secret_of(JOB, order(), "abc123-0a0b0c", made)) == []
    assert pruned("Job", job, old=False) == (job, [])


def test_one_that_names_everything() -> None:
    job = job_of(order(), section(**EVERYTHING), "s")
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    assert job["spec"]["suspend"] is True
    assert pod["activeDeadlineSeconds"] == 3600
    assert pod["securityContext"] == {"fsGroup": 1000}
    assert (pod["hostNetwork"], pod["serviceAccountName"]) == (True, "trials")
    assert pod["automountServiceAccountToken"] is True
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert (pod["priorityClassName"], pod["nodeSelector"]) == ("low", {"gpu": "a100"})
    assert container["resources"] == {
        "requests": {"cpu": "2", "memory": "8Gi"},
        "limits": {"cpu": "4.5", "memory": "16Gi", "nvidia.com/gpu": "1"},
    }
    assert container["imagePullPolicy"] == "Always"
    assert container["securityContext"] == {"runAsUser": 1000}
    sources = [{k: v for k, v in each.items() if k != "name"} for each in pod["volumes"]]
    assert sources[1:] == [
        {"emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
        {"persistentVolumeClaim": {"claimName": "weights"}},
        {"nfs": {"server": "fd00::1", "path": "/export"}},
        {"hostPath": {"path": "/mnt/fast", "type": "Directory"}},
        {"emptyDir": {"sizeLimit": "50Gi"}},
    ]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == [
        "/run/bequeath", "/dev/shm", "/weights", "/data", "/fast", "/scratch",
    ]  # fmt: skip
    assert [mount["name"] for mount in container["volumeMounts"]] == [
        volume["name"] for volume in pod["volumes"]
    ]


def test_nothing_is_ever_started_twice_by_the_cluster() -> None:
    """On old servers, which drop the policy, by the head: see test_reading."""
    job = job_of(order(nodes=3), section(), "s")
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["completions"], spec["parallelism"]) == (0, 3, 3)
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert spec["podFailurePolicy"]["rules"][0]["action"] == "FailJob"
    assert spec["podReplacementPolicy"] == "Failed"
    assert "suspend" not in spec
    kept, _ = pruned("Job", job, old=True)
    assert "podFailurePolicy" not in kept["spec"]
    assert kept["spec"]["backoffLimit"] == 0


def test_pods_of_one_trial_have_ranks_and_know_their_addresses() -> None:
    """Servers that know no ranks drop the word, and agents claim them."""
    job = job_of(order(nodes=3), section(), "s")
    assert job["spec"]["completionMode"] == "Indexed"
    assert "completionMode" not in pruned("Job", job, old=True)[0]["spec"]
    assert "completionMode" not in job_of(order(), section(), "s")["spec"]

    def address(job: dict[str, Any]) -> list[dict[str, Any]]:
        (container,) = job["spec"]["template"]["spec"]["containers"]
        return [x["valueFrom"] for x in container["env"] if x["name"] == "BEQUEATH_NODE_ADDRESS"]

    assert address(job) == [{"fieldRef": {"fieldPath": "status.podIP"}}]
    assert address(job_of(order(), section(), "s")) == []
    given = order(nodes=3)
    given = dataclasses.replace(given, environment={"BEQUEATH_NODE_ADDRESS": "fast"})
    ((source,),) = (each.keys() for each in address(job_of(given, section(), "s")))
    assert source == "secretKeyRef", "the user's own counts"


def test_the_grace_of_a_pod_covers_that_of_its_trials() -> None:
    def grace(seconds: float) -> int:
        pod = job_of(order(grace_s=seconds), section(), "s")["spec"]["template"]["spec"]
        return int(pod["terminationGracePeriodSeconds"])

    assert (grace(10), grace(60.5)) == (30, 76)


def test_secrets_are_in_the_secret_alone() -> None:
    """Neither in arguments nor in variables that `kubectl describe` shows."""
    job = job_of(order(), section(**EVERYTHING), "s")
    assert "S3CRET" not in json.dumps(job)
    secret = secret_of(JOB, order(), "s", {"metadata": {"uid": "u1"}})
    values = {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}
    config = json.loads(values.pop("config"))
    assert (config["ticket"], config["head"]["secret_key"]) == ("S3CRET-TICKET", "S3CRET-KEY")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in container["env"]}
    assert {name: values[ref["key"]] for name, ref in variables.items()} == {
        "TOKEN": "S3CRET-VALUE", "b.c": "2",
    }  # fmt: skip
    assert {ref["name"] for ref in variables.values()} == {secret["metadata"]["name"]}
    assert container["command"] == ["python3", "-m", "trial_runtime.agent", "/run/bequeath/config"]
    (owner,) = secret["metadata"]["ownerReferences"]
    assert owner["uid"] == "u1"
    assert "blockOwnerDeletion" not in owner, "a right of its own, as on OpenShift"
    assert job["metadata"]["annotations"]["bequeath/ticket"] == ticket_of(order())


def test_names_that_are_no_labels_are_left_out() -> None:
    labels = job_of(order(worker="_odd.", experiment="x" * 64), section(), "s")["metadata"][
        "labels"
    ]
    assert "bequeath/worker" not in labels
    assert "bequeath/experiment" not in labels
    assert labels["bequeath/service"] == "s"


BAD = {
    "no image": ({"image": "a b"}, "image"),
    "no namespace": ({"namespace": "My_Space"}, "lower-case letters"),
    "no quantity": ({"limits": {"memory": "16 GB"}}, "a quantity of Kubernetes, as 4, 500m"),
    "a quantity that is a truth": ({"limits": {"cpu": True}}, "a quantity of Kubernetes"),
    "no resource": ({"limits": {"my gpu": 1}}, "nvidia.com/gpu"),
    "promised too much": (
        {"requests": {"memory": "2Gi"}, "limits": {"memory": "1500Mi"}},
        "has 2Gi of 'memory' in 'requests', and 1500Mi in 'limits'",
    ),
    "no volume": ({"volumes": [{"at": "/x"}]}, "names none of 'claim'"),
    "two in one": ({"volumes": [{"at": "/x", "claim": "a", "scratch": "1Gi"}]}, "claim and scr"),
    "no export": ({"volumes": [{"at": "/x", "nfs": "host"}]}, "must be HOST:/PATH, not 'host'"),
    "a place taken": (
        {"volumes": [{"at": "/x", "claim": "a"}, {"at": "/x/", "claim": "b"}]},
        "has two volumes at /x",
    ),
    "shared memory twice": (
        {"sharedMemory": "1Gi", "volumes": [{"at": "/dev/shm", "claim": "a"}]},
        "has two volumes at /dev/shm",
    ),
    "a relative place": ({"volumes": [{"at": "x", "claim": "a"}]}, "from the root of the pod"),
    "a path that climbs": (
        {"volumes": [{"at": "/x", "claim": "a", "subPath": "../b"}]},
        "a path below the volume",
    ),
    "restarts": ({"pod": {"restartPolicy": "Always"}}, "has 'pod.restartPolicy', which bequeath"),
    "a command": ({"container": {"command": ["sh"]}}, "has 'container.command', which bequeath"),
    "no policy": ({"imagePullPolicy": "sometimes"}, "Always"),
    "no address": ({"headAddress": "a:b"}, "HOST or HOST:PORT"),
    "no time": ({"wallTime": "0.5s"}, "has a 'wallTime' of less than a second"),
    "a python that no command holds": ({"python": "a\0b"}, "one line of plain characters"),
    "a place of two lines": ({"volumes": [{"at": "/a\nb", "claim": "a"}]}, "root of the pod"),
    "a label of two lines": ({"nodeSelector": {"a\nb": "x"}}, "a label of Kubernetes"),
    "a label of blanks": ({"nodeSelector": {"a": "x y"}}, "a label of Kubernetes"),
    "half a GPU": ({"limits": {"nvidia.com/gpu": 0.5}}, "has 0.5 of 'nvidia.com/gpu'"),
    "a GPU that is asked for alone": (
        {"requests": {"nvidia.com/gpu": 1}},
        "has 'nvidia.com/gpu' in 'requests' alone",
    ),
    "no number": ({"pod": {"x": float("nan")}}, "that no JSON holds"),
    "no number of a taint": ({"tolerations": [{"x": float("inf")}]}, "that no JSON holds"),
    "an unknown key": ({"imge": "x"}, "imge"),
}


@pytest.mark.parametrize("keys, sentence", BAD.values(), ids=BAD.keys())
def test_what_does_not_fit_is_a_sentence(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        section(**keys)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "text, number",
    [("4", 4), ("500m", 0.5), ("1k", 1000), ("1Ki", 1024), ("1.5Gi", 1.5 * 2**30), ("2e3", 2000),
     ("1E", 1e18), ("3Ei", 3 * 2**60)],
)  # fmt: skip
def test_quantities_are_numbers(text: str, number: float) -> None:
    assert amount(text) == number


def test_workers_reach_the_head_by_one_address() -> None:
    planned = section(allocations={"min": 1, "max": 3}, headAddress="head:7000").planned(2, ())
    assert [each.address for each in planned] == ["head:7000"] * 3
    assert [each.name for each in planned] == ["kubernetes", "kubernetes-2", "kubernetes-3"]
    assert [each.elastic for each in planned] == [False, True, True]
