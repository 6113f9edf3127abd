"""Plays AdaptDL: AdaptDLJobs become groups of pods, which it stops and starts anew when it changes
its mind about their number.

As the real one does, it takes a job for done when all pods of a group have ended well, whoever
wanted that; for failed when one has failed, unless that was by SIGTERM or since it was deleted
itself; and makes nothing of a pod that a signal has ended and nobody has deleted.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from tests.support.kubernetes.contract import complaints
from tests.support.kubernetes.crds import Crd, published
from tests.support.kubernetes.operators import Hands, Object, Operator, phase_of

SHARED_MEMORY = "/dev/shm"
NODE = "n1"
_DONE = ("Succeeded", "Failed")


def judge_of_jobs() -> Crd:
    """The definition, and what the webhook of the project asks beside."""

    def webhook(before: Any, made: Any) -> list[str]:
        spec = made.get("spec", {})
        if before is not None and before.get("spec") != spec:
            return ["spec: updates to job spec are forbidden"]
        template = spec.get("template", {})
        about = {**template.get("metadata", {}), "name": "p"}
        body = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": about}
        found = [f"spec.template: {each}" for each in complaints("Pod", body)]
        if spec.get("maxReplicas", 1 << 30) < spec.get("minReplicas", 0):
            found.append("spec.maxReplicas must be greater than or equal to spec.minReplicas")
        return found

    return published("adaptdl", "adaptdljobs", rules=[webhook])


class AdaptdlController(Operator):
    """See above.

    Attributes:
        replicas: pods that each job is to have, by its name; as many as it asks for at least, if
            it is not named. A test may change it: 0 takes all of them away.
    """

    name_label = "adaptdl/job"

    def __init__(self, crd: Crd) -> None:
        super().__init__(crd)
        self.replicas: dict[str, int] = {}

    def control(self, hands: Hands, document: Object, pods: Sequence[Object]) -> None:
        """See :meth:`Operator.control`."""
        status = copy.deepcopy(document.get("status") or {})
        phase = status.setdefault("phase", "Pending")
        if phase in _DONE:
            return
        name, spec = document["metadata"]["name"], document["spec"]
        many = self.replicas.get(name, spec.get("minReplicas", 0) or 1)
        allocation = [NODE] * many
        ended = _completion_of(pods, preemptible=spec.get("preemptible", True))
        if ended:
            status.update(ended, completionTimestamp=hands.timestamp())
            allocation = []
            for pod in pods:
                if phase_of(pod) != "Failed":
                    self.end_pod(hands, pod)
        else:
            self._go_on(hands, document, pods, status, allocation)
        given = allocation or None
        status["allocation"] = given
        status["replicas"] = len(allocation) if given else None
        status["readyReplicas"] = sum(map(_is_ready, pods)) if given else None
        self.note(hands, document, {k: v for k, v in status.items() if v is not None})

    def _go_on(
        self,
        hands: Hands,
        document: Object,
        pods: Sequence[Object],
        status: Object,
        allocation: Sequence[str],
    ) -> None:
        """One step of a job that is not done, by its phase."""
        phase, many = status["phase"], len(allocation)
        moved = any(_annotation(pod, "replicas") != str(many) for pod in pods)
        if phase == "Pending" and allocation and not pods:
            status["phase"] = "Starting"
        elif phase == "Starting" and (moved or not allocation):
            status["phase"] = "Stopping"
        elif phase == "Starting" and not pods:
            status["group"] = status.get("group", -1) + 1
            for rank in range(many):
                if wrong := self._make(hands, document, status["group"], rank, many):
                    status.update(phase="Failed", reason="PodCreationError", message=wrong)
        elif phase == "Starting" and len(pods) != many:
            status["phase"] = "Stopping"
        elif phase == "Starting" and sum(map(_is_ready, pods)) == many:
            status["phase"] = "Running"
        elif phase == "Running" and (moved or not pods):
            status["phase"] = "Stopping"
        elif phase == "Stopping":
            for pod in pods:
                self.end_pod(hands, pod)
            if not pods:
                status["phase"] = "Pending"

    def _make(self, hands: Hands, document: Object, group: int, rank: int, many: int) -> str:
        """Make a pod; why the server takes none, if it does not."""
        about = document["metadata"]
        template = copy.deepcopy(document["spec"]["template"])
        given = template.setdefault("metadata", {})
        given["annotations"] = {
            **given.get("annotations", {}),
            "adaptdl/replicas": str(many),
            "adaptdl/group": str(group),
            "adaptdl/rank": str(rank),
            "adaptdl/node": NODE,
        }
        spec = template["spec"]
        spec["hostname"] = f"{about['name']}-{group}-{rank}"
        spec["restartPolicy"] = "Never"
        spec.setdefault("volumes", []).append(
            {"name": "adaptdl-shm", "emptyDir": {"medium": "Memory"}}
        )
        for container in spec["containers"]:
            mounts = container.setdefault("volumeMounts", [])
            if any(each["mountPath"] == SHARED_MEMORY for each in mounts):
                return f'volumeMounts: Invalid value: "{SHARED_MEMORY}": must be unique'
            # The real one's comes last, but runtimes mount what lies deeper after what lies above.
            mounts.insert(0, {"name": "adaptdl-shm", "mountPath": SHARED_MEMORY})
        variables = {
            "ADAPTDL_JOB_ID": f"trials/{about['name']}",
            "ADAPTDL_MASTER_PORT": str(47000 + group),
            "ADAPTDL_NUM_NODES": "1",
            "ADAPTDL_NUM_RESTARTS": str(group),
            "ADAPTDL_NUM_REPLICAS": str(many),
            "ADAPTDL_REPLICA_RANK": str(rank),
            "ADAPTDL_SUPERVISOR_URL": "http://adaptdl-supervisor:8080",
        }
        name = f"{about['name']}-{about['uid']}-{group}-{rank}"
        labels = {"adaptdl": "true"}
        self.make_pod(hands, document, template, name, labels=labels, variables=variables)
        return ""


def _completion_of(pods: Sequence[Object], *, preemptible: bool) -> Object:
    """How a job is done by its pods; empty: it is not."""
    whole = pods and len(pods) == int(_annotation(pods[0], "replicas"))
    if whole and all(phase_of(pod) == "Succeeded" for pod in pods):
        return {"phase": "Succeeded"}
    for pod in pods:
        if phase_of(pod) != "Failed":
            continue
        reason = str(pod["status"].get("reason", ""))
        wanted = "deletionTimestamp" in pod["metadata"] or 143 in _codes_of(pod)
        if reason == "UnexpectedAdmissionError" or reason.startswith("Outof"):
            continue
        if preemptible and wanted:
            continue
        message = f"{pod['metadata']['name']} Failed"
        return {"phase": "Failed", "reason": "PodFailure", "message": message}
    return {}


def _codes_of(pod: Object) -> list[int]:
    states = (each.get("state", {}) for each in pod["status"].get("containerStatuses", []))
    return [each["terminated"]["exitCode"] for each in states if "terminated" in each]


def _is_ready(pod: Object) -> bool:
    containers = pod.get("status", {}).get("containerStatuses", [])
    return bool(containers) and all(each["ready"] for each in containers)


def _annotation(pod: Object, key: str) -> str:
    value: str = pod["metadata"]["annotations"][f"adaptdl/{key}"]
    return value


def adaptdl_controllers() -> list[Operator]:
    """The controller by its published definition, with the webhook's rules."""
    return [AdaptdlController(judge_of_jobs())]
