"""Plays the Kubeflow Training Operator v1.9: PyTorchJobs and TFJobs become pods, whose roles know
one another by its variables.

As the real one does, it makes a missing pod anew, and at the first pod that fails it removes all
*before* it says so, whatever ``cleanPodPolicy`` says. The real one also makes a Service for each
pod, on which nothing here depends.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence

from tests.support.kubernetes.crds import Crd, published
from tests.support.kubernetes.operators import Hands, Object, Operator, phase_of

PORT = 23456
LABELS = "training.kubeflow.org"


class TrainingOperator(Operator):
    """See above.

    Args:
        crd: of the kind.
        specs: the field with the pods of each role.
        chiefs: the roles of which the first that a job has says how that ends.
    """

    name_label = f"{LABELS}/job-name"

    def __init__(self, crd: Crd, specs: str, chiefs: Sequence[str]) -> None:
        super().__init__(crd)
        self._specs = specs
        self._chiefs = chiefs
        self._failing: set[str] = set()  # uids of those whose pods are being removed

    def control(self, hands: Hands, document: Object, pods: Sequence[Object]) -> None:
        """See :meth:`Operator.control`."""
        conditions = document.get("status", {}).get("conditions", [])
        if any(_holds(conditions, each) for each in ("Succeeded", "Failed")):
            return
        status = copy.deepcopy(document.get("status", {}))
        status.setdefault("conditions", [])
        if document["spec"].get("runPolicy", {}).get("suspend"):
            for pod in pods:
                self.end_pod(hands, pod)
            self._say(hands, document, status, "Created", "Suspended")
            return
        for each in [x for x in status["conditions"] if x["type"] == "Suspended"]:
            each["status"] = "False"
        self._make_missing(hands, document, pods)
        failed = [each for each in pods if phase_of(each) == "Failed"]
        first = self._first_of(document, pods)
        if failed or document["metadata"]["uid"] in self._failing:
            self._fail(hands, document, status, pods)
        elif first is not None and phase_of(first) == "Succeeded":
            self._say(hands, document, status, "Created", "Succeeded")
        elif first is not None and phase_of(first) == "Running":
            self._say(hands, document, status, "Created", "Running")
        else:
            self._say(hands, document, status, "Created")

    def _fail(self, hands: Hands, document: Object, status: Object, pods: Sequence[Object]) -> None:
        """Remove all pods, and say next time that it has failed."""
        uid = document["metadata"]["uid"]
        if document["spec"].get("runPolicy", {}).get("backoffLimit") is None:
            self._say(hands, document, status, "Created", "Failed")
        elif uid in self._failing:
            self._say(hands, document, status, "Created", "Failed")
            self._failing.discard(uid)
        else:
            self._failing.add(uid)
            for pod in pods:
                self.end_pod(hands, pod)

    def _first_of(self, document: Object, pods: Sequence[Object]) -> Object | None:
        roles = document["spec"][self._specs]
        chief = next((each for each in self._chiefs if each in roles), None)
        name = f"{document['metadata']['name']}-{str(chief).lower()}-0"
        return next((each for each in pods if each["metadata"]["name"] == name), None)

    # -- pods ------------------------------------------------------------------------------------

    def _make_missing(self, hands: Hands, document: Object, pods: Sequence[Object]) -> None:
        if document["metadata"]["uid"] in self._failing:
            return
        there = {each["metadata"]["name"] for each in pods}
        for role, given in document["spec"][self._specs].items():
            for index in range(given.get("replicas", 1)):
                name = f"{document['metadata']['name']}-{role.lower()}-{index}"
                if name in there:
                    continue
                labels = {
                    f"{LABELS}/operator-name": f"{self.crd.word.lower()}-controller",
                    f"{LABELS}/replica-type": role.lower(),
                    f"{LABELS}/replica-index": str(index),
                }
                template = copy.deepcopy(given["template"])
                template["spec"]["restartPolicy"] = given.get("restartPolicy", "Never")
                variables = self._variables(document, role, index)
                self.make_pod(hands, document, template, name, labels=labels, variables=variables)

    def _variables(self, document: Object, role: str, index: int) -> Mapping[str, str]:
        roles = document["spec"][self._specs]
        many = sum(each.get("replicas", 1) for each in roles.values())
        name = document["metadata"]["name"]
        if self.crd.word == "TFJob":
            cluster = {
                each.lower(): [
                    f"{name}-{each.lower()}-{i}.trials.svc:2222"
                    for i in range(given.get("replicas", 1))
                ]
                for each, given in roles.items()
            }
            task = {"type": role.lower(), "index": index}
            config = {"cluster": cluster, "task": task, "environment": "cloud"}
            return {"TF_CONFIG": json.dumps(config)} if many > 1 else {}
        rank = str(index + (1 if role == "Worker" else 0))
        return {
            "PYTHONUNBUFFERED": "1",
            "MASTER_ADDR": f"{name}-master-0",
            "MASTER_PORT": str(PORT),
            "PET_MASTER_ADDR": f"{name}-master-0",
            "PET_MASTER_PORT": str(PORT),
            "WORLD_SIZE": str(many),
            "RANK": rank,
            "PET_NNODES": str(many),
            "PET_NODE_RANK": rank,
        }

    # -- status ----------------------------------------------------------------------------------

    def _say(self, hands: Hands, document: Object, status: Object, *types: str) -> None:
        """Write the conditions that hold now, the order of which says nothing."""
        word, name, now = self.crd.word, document["metadata"]["name"], hands.timestamp()
        conditions = status["conditions"]
        for type_ in types:
            if _holds(conditions, type_):
                continue
            conditions[:] = [each for each in conditions if each["type"] != type_]
            text = _TEXTS[type_].format(word=word, name=name)
            conditions.insert(0, {
                "type": type_, "status": "True", "reason": f"{word}{type_}", "message": text,
                "lastUpdateTime": now, "lastTransitionTime": now,
            })  # fmt: skip
        over = {"Succeeded", "Failed", "Suspended"} & {*types}
        for each in conditions:
            if each["type"] == "Running" and over:
                each["status"] = "False"
        self.note(hands, document, status)


_TEXTS = {
    "Created": "{word} {name} is created.",
    "Running": "{word} {name} is running.",
    "Suspended": "{word} {name} is suspended.",
    "Succeeded": "{word} {name} is successfully completed.",
    "Failed": "{word} {name} has failed because it has reached the specified backoff limit",
}


def _holds(conditions: Sequence[Object], type_: str) -> bool:
    return any((x["type"], x["status"]) == (type_, "True") for x in conditions)


def training_operators() -> list[Operator]:
    """The controllers of both kinds, each by its published definition."""
    chiefs = ("Chief", "Master", "Worker")
    return [
        TrainingOperator(published("kubeflow-v1", "pytorchjobs"), "pytorchReplicaSpecs", chiefs),
        TrainingOperator(published("kubeflow-v1", "tfjobs"), "tfReplicaSpecs", chiefs),
    ]
