"""Plays FrameworkController: Frameworks become pods, one for each task, and their status says how
far each task is.

As the real one does, it notes how a pod ended and deletes it then, deletes all others when the
attempt is over, and says ``AttemptCompleted`` before it decides whether another attempt follows.
The real one puts a ConfigMap between a Framework and its pods, on which nothing here depends.
"""

from __future__ import annotations

import base64
import copy
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support.kubernetes.contract import complaints
from tests.support.kubernetes.crds import CONTRACTS, Crd, published
from tests.support.kubernetes.operators import Hands, Object, Operator, phase_of

#: Codes of which it says how likely the next try ends otherwise.
ATTRIBUTES = {
    **{code: ["Transient"] for code in (200, -100, -101, -110, -111, -120)},
    201: ["Transient", "Conflict"],
    **{code: ["Permanent"] for code in (210, -200, -210, -220, -230)},
}

_BEFORE = ("AttemptCreationPending", "AttemptCreationRequested")
_OVER = "Completed"


def phrases() -> dict[int, str]:
    """The phrases of its codes, as it publishes them."""
    read: list[Any] = json.loads(
        (Path(CONTRACTS) / "frameworkcontroller/completion-codes.json").read_text()
    )
    return {each["code"]: each["phrase"] for each in read if isinstance(each["code"], int)}


PHRASES = phrases()


def completion(code: int, text: str = "", **more: Any) -> Object:
    """A completion status of a code."""
    attributes = ATTRIBUTES.get(code, [])
    name = "Succeeded" if code == 0 else "Failed"
    return {
        "code": code,
        "phrase": PHRASES.get(code, "ContainerUnrecognizedFailed"),
        "type": {"name": name, "attributes": attributes},
        "diagnostics": text,
        **more,
    }


def judge_of_frameworks() -> Crd:
    """The definition, and what the server asks of the pods of which it knows nothing."""

    def pods(_: Any, made: Any) -> list[str]:
        found = []
        for role in made.get("spec", {}).get("taskRoles", []):
            template = role.get("task", {}).get("pod", {})
            about = {**template.get("metadata", {}), "name": "p"}
            body = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": about}
            found += [f"pod of {role.get('name')}: {each}" for each in complaints("Pod", body)]
        return found

    return published("frameworkcontroller", "frameworks", rules=[pods])


class FrameworkController(Operator):
    """See above.

    Args:
        crd: of Frameworks.
        compresses: whether the statuses of tasks are a text of gzip and base64, as for large jobs.

    Attributes:
        is_away: it does nothing; a test may change it.
    """

    name_label = "FC_FRAMEWORK_NAME"

    def __init__(self, crd: Crd, *, compresses: bool = False) -> None:
        super().__init__(crd)
        self._compresses = compresses
        self.is_away = False

    def step(self, hands: Hands, document: Object, pods: Sequence[Object]) -> None:
        """See :meth:`Operator.step`: what is deleted goes without it, by the garbage collector."""
        if not self.is_away or "deletionTimestamp" in document["metadata"]:
            super().step(hands, document, pods)

    def control(self, hands: Hands, document: Object, pods: Sequence[Object]) -> None:
        """See :meth:`Operator.control`."""
        before = document.get("status") or {}
        status = self._unpacked(before) or self._new(hands, document)
        if status["state"] == _OVER:
            return
        self._advance(hands, document, status, {x["metadata"]["name"]: x for x in pods})
        packed = self._packed(status)
        if packed != before:
            hands.note(self.plural, document["metadata"]["name"], packed)

    # -- the attempt -----------------------------------------------------------------------------

    def _advance(
        self, hands: Hands, document: Object, status: Object, pods: dict[str, Object]
    ) -> None:
        """One step of the state of a Framework."""
        attempt, state = status["attemptStatus"], status["state"]
        stops = document["spec"].get("executionType") == "Stop"
        if state == "AttemptCompleted":
            self._decide(hands, document, status, stops=stops)
            return
        if stops and not attempt.get("completionStatus"):
            attempt["completionStatus"] = completion(-210, "User has requested to stop")
        if state in _BEFORE and not attempt.get("completionStatus"):
            later = "AttemptPreparing" if state == _BEFORE[1] else _BEFORE[1]
            self._go(hands, status, later)
            return
        for role, task in _tasks_of(document, attempt):
            self._look(hands, document, role, task, pods)
        states = [task["state"] for _, task in _tasks_of(document, attempt)]
        if state == "AttemptPreparing" and "AttemptRunning" in states:
            self._go(hands, status, "AttemptRunning")
        if not attempt.get("completionStatus"):
            attempt["completionStatus"] = self._judge(document, attempt)
        if attempt["completionStatus"]:
            self._end(hands, status, pods, document)

    def _end(self, hands: Hands, status: Object, pods: dict[str, Object], document: Object) -> None:
        if status["state"] not in ("AttemptDeletionRequested", "AttemptDeleting"):
            for _, task in _tasks_of(document, status["attemptStatus"]):
                if not task["attemptStatus"].get("completionStatus"):
                    beside = completion(-220, "Stop to complete current FrameworkAttempt")
                    task["attemptStatus"]["completionStatus"] = beside
            self._go(hands, status, "AttemptDeletionRequested")
        elif pods:
            for pod in pods.values():
                self.end_pod(hands, pod)
            self._go(hands, status, "AttemptDeleting")
        else:
            for _, task in _tasks_of(document, status["attemptStatus"]):
                task["state"] = _OVER
            status["attemptStatus"]["completionTime"] = hands.timestamp()
            self._go(hands, status, "AttemptCompleted")

    def _decide(self, hands: Hands, document: Object, status: Object, *, stops: bool) -> None:
        """Whether another attempt follows, by the policy of retries."""
        policy = document["spec"].get("retryPolicy", {})
        most, counts = policy.get("maxRetryCount", 0), status["retryPolicyStatus"]
        ended = status["attemptStatus"]["completionStatus"]
        failed = ended["type"]["name"] == "Failed"
        again = most == -2 or (failed and (most == -1 or counts["accountableRetriedCount"] < most))
        if stops or not again:
            status["completionTime"] = hands.timestamp()
            self._go(hands, status, _OVER)
            return
        counts["totalRetriedCount"] += 1
        counts["accountableRetriedCount"] += 1
        status["attemptStatus"] = self._attempt(hands, document, counts["totalRetriedCount"])
        self._go(hands, status, _BEFORE[0])

    def _judge(self, document: Object, attempt: Object) -> Object | None:
        """How the attempt is over, by the policies of its roles; None: it is not."""
        everything = list(_tasks_of(document, attempt))
        for role in document["spec"]["taskRoles"]:
            policy = role.get("frameworkAttemptCompletionPolicy", {})
            own = [x for each, x in everything if each["name"] == role["name"] and _is_over(x)]
            for name, key in (
                ("Failed", "minFailedTaskCount"),
                ("Succeeded", "minSucceededTaskCount"),
            ):
                ended = [x for x in own if _ended_as(x) == name]
                least = policy.get(key, -1)
                if least != -1 and ended and len(ended) >= least:
                    last = ended[-1]
                    trigger = {"taskRoleName": role["name"], "taskIndex": last["index"],
                               "message": f"{name} task count has reached {least}"}  # fmt: skip
                    given = copy.deepcopy(last["attemptStatus"]["completionStatus"])
                    given.pop("pod", None)
                    return {**given, "trigger": trigger}
        if all(_is_over(task) for _, task in everything):
            return completion(0, "All tasks are completed")
        return None

    # -- tasks -----------------------------------------------------------------------------------

    def _look(
        self, hands: Hands, document: Object, role: Object, task: Object, pods: dict[str, Object]
    ) -> None:
        """One step of a task: its pod is made once, noted when it has ended, and deleted then."""
        own, pod = task["attemptStatus"], pods.get(task["attemptStatus"]["podName"])
        if _is_over(task):
            return
        if own.get("podUID") is None and pod is None:
            if own.get("completionStatus") is None:
                self._make(hands, document, role, task)
            else:
                task["state"] = _OVER
            return
        if pod is None:
            ended = completion(-101, "Pod was deleted by others")
            own["completionStatus"] = own.get("completionStatus") or ended
            task["state"] = _OVER
            return
        own["podUID"] = pod["metadata"]["uid"]
        if "deletionTimestamp" in pod["metadata"]:
            task["state"] = "AttemptDeleting"
        elif phase_of(pod) in ("Succeeded", "Failed"):
            if own.get("completionStatus"):
                task["state"] = "AttemptDeletionRequested"
                self.end_pod(hands, pod)
            else:
                own["completionStatus"] = _completion_of(pod)
                task["state"] = "AttemptDeletionPending"
        else:
            runs = phase_of(pod) == "Running"
            task["state"] = "AttemptRunning" if runs else "AttemptPreparing"

    def _make(self, hands: Hands, document: Object, role: Object, task: Object) -> None:
        name = document["metadata"]["name"]
        about = {
            "FC_FRAMEWORK_NAMESPACE": "trials",
            "FC_FRAMEWORK_NAME": name,
            "FC_TASKROLE_NAME": role["name"],
            "FC_TASK_INDEX": str(task["index"]),
            "FC_POD_NAME": task["attemptStatus"]["podName"],
        }
        template = copy.deepcopy(role["task"]["pod"])
        given = template.setdefault("metadata", {})
        given["annotations"] = {**given.get("annotations", {}), **about}
        body = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**given, "name": "p"}}
        if wrong := complaints("Pod", body):
            text = f"Failed to create Pod: {wrong[0]}"
            task["attemptStatus"]["completionStatus"] = completion(-200, text)
            task["state"] = _OVER
            return
        task["state"] = _BEFORE[1]
        labels = {"FC_TASKROLE_NAME": role["name"]}
        self.make_pod(
            hands, document, template, about["FC_POD_NAME"], labels=labels, variables=about
        )

    # -- status ----------------------------------------------------------------------------------

    def _new(self, hands: Hands, document: Object) -> Object:
        now = hands.timestamp()
        return {
            "startTime": now,
            "runTime": None,
            "completionTime": None,
            "state": _BEFORE[0],
            "transitionTime": now,
            "retryPolicyStatus": _no_retries(),
            "attemptStatus": self._attempt(hands, document, 0),
        }

    def _attempt(self, hands: Hands, document: Object, number: int) -> Object:
        now, name = hands.timestamp(), document["metadata"]["name"]

        def task(role: str, index: int) -> Object:
            pod = {"podName": f"{name}-{role}-{index}", "podUID": None, "podNodeName": None}
            own = {"id": 0, "startTime": now, "instanceUID": None, "completionStatus": None, **pod}
            return {
                "index": index, "startTime": now, "state": _BEFORE[0], "transitionTime": now,
                "deletionPending": False, "retryPolicyStatus": _no_retries(), "attemptStatus": own,
            }  # fmt: skip

        return {
            "id": number,
            "startTime": now,
            "runTime": None,
            "completionTime": None,
            "instanceUID": None,
            "configMapName": f"{name}-attempt",
            "configMapUID": None,
            "completionStatus": None,
            "taskRoleStatuses": [
                {
                    "name": role["name"],
                    "podGracefulDeletionTimeoutSec": None,
                    "taskStatuses": [task(role["name"], x) for x in range(role["taskNumber"])],
                }
                for role in document["spec"]["taskRoles"]
            ],
        }

    def _go(self, hands: Hands, status: Object, state: str) -> None:
        if status["state"] != state:
            status["state"], status["transitionTime"] = state, hands.timestamp()

    def _packed(self, status: Object) -> Object:
        if not self._compresses:
            return status
        made = copy.deepcopy(status)
        attempt = made["attemptStatus"]
        content = json.dumps(attempt["taskRoleStatuses"]).encode()
        attempt["taskRoleStatusesCompressed"] = base64.b64encode(
            gzip.compress(content, mtime=0)
        ).decode()
        attempt["taskRoleStatuses"] = None
        return made

    def _unpacked(self, status: Object) -> Object:
        made = copy.deepcopy(status)
        packed = made.get("attemptStatus", {}).pop("taskRoleStatusesCompressed", None)
        if packed:
            content = gzip.decompress(base64.b64decode(packed))
            made["attemptStatus"]["taskRoleStatuses"] = json.loads(content)
        return made


def _no_retries() -> Object:
    return {"totalRetriedCount": 0, "accountableRetriedCount": 0, "retryDelaySec": None}


def _tasks_of(document: Object, attempt: Object) -> Iterator[tuple[Object, Object]]:
    for role, status in zip(
        document["spec"]["taskRoles"], attempt["taskRoleStatuses"], strict=True
    ):
        for task in status["taskStatuses"]:
            yield role, task


def _is_over(task: Object) -> bool:
    return bool(task["state"] == _OVER)


def _ended_as(task: Object) -> str:
    name: str = task["attemptStatus"]["completionStatus"]["type"]["name"]
    return name


def _completion_of(pod: Object) -> Object:
    """How a pod ended: the code of its container, unless that is one of its own words."""
    status = pod["status"]
    containers = []
    for each in status.get("containerStatuses", []):
        ended = each.get("state", {}).get("terminated")
        if ended is not None:
            words = {key: ended[key] for key in ("reason", "message") if key in ended}
            containers.append({"name": each["name"], "code": ended["exitCode"], **words})
    given = {key: status[key] for key in ("reason", "message") if key in status}
    whole = {**given, "containers": containers}
    codes = [each["code"] for each in containers if each["code"]]
    if phase_of(pod) == "Succeeded":
        return completion(0, "Pod succeeded", pod=whole)
    text = f"PodPattern unmatched: {json.dumps(whole)}"
    return completion(codes[-1] if codes else -300, text, pod=whole)


def framework_controllers() -> list[Operator]:
    """The controller by its derived definition."""
    return [FrameworkController(published("frameworkcontroller", "frameworks"))]
