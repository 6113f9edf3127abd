"""Plays Kubeflow Trainer 2.3, and the controllers below it: of a TrainJob and its runtime a JobSet
is made, of that Jobs, and of those pods. Here is one step of all three, and no object in between.

As the real ones do: what has failed is started again as the *runtime* says; the pods of a JobSet
that fails are ended; at the limit of a TrainJob its JobSet is removed, with all pods; and one that
has failed **begins anew when its JobSet is removed** (kubeflow/trainer#3737), and is no failed one.
"""

from __future__ import annotations

import copy
import datetime
import uuid
from collections.abc import Sequence

from tests.support.kubernetes.crds import Crd
from tests.support.kubernetes.operators import Hands, Object, Operator, phase_of
from tests.support.kubernetes.train_jobs import (
    GROUP,
    STEP,
    USUAL,
    pods_in,
    runtime,
    runtimes,
    train_jobs,
)

INDEX = "batch.kubernetes.io/job-completion-index"

#: Variables that the policy for torch sets, and nobody else.
_RESERVED = (
    "PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT",
)  # fmt: skip

_KINDS = ("ClusterTrainingRuntime", "TrainingRuntime")

#: Pods whose processes have the numbers that their nodes know them by.
ON_HOSTS = runtime("on-hosts", pod={"restartPolicy": "Never", "hostPID": True})


class Keeper(Operator):
    """Keeps the runtimes that are there: nothing is made of them alone."""

    name_label = ""

    def __init__(self, crd: Crd, given: Sequence[Object] = ()) -> None:
        super().__init__(crd)
        self.given = given

    def control(self, hands: Hands, document: Object, pods: Sequence[Object]) -> None:
        """See :meth:`Operator.control`."""


class _JobSet:
    """What there is of a TrainJob: the pods of its nodes, and how often they failed."""

    def __init__(self) -> None:
        self.now: dict[int, str] = {}  # the name of the pod of each node
        self.seen: set[str] = set()
        self.done: set[int] = set()
        self.failures = self.restarts = 0
        self.has_failed = False


class TrainController(Operator):
    """See above.

    Args:
        crd: of TrainJobs.
        given: runtimes that are there.
    """

    name_label = "jobset.sigs.k8s.io/jobset-name"

    def __init__(self, crd: Crd, given: Sequence[Object]) -> None:
        super().__init__(crd)
        self._runtimes = {(x["kind"], x["metadata"]["name"]): x for x in given}
        crd.rules.append(self._admits)
        self._sets: dict[str, _JobSet] = {}
        self._removed: set[str] = set()

    def remove_job_set(self, name: str) -> None:
        """Have the JobSet of a TrainJob removed, as after its time to live."""
        self._removed.add(name)

    def _admits(self, before: Object | None, after: Object) -> list[str]:
        """What the webhook of TrainJobs refuses."""
        ref = after["spec"]["runtimeRef"]
        found = self._runtimes.get((ref.get("kind", "ClusterTrainingRuntime"), ref["name"]))
        if found is None:
            kind = ref.get("kind", "ClusterTrainingRuntime")
            return [
                f'spec.runtimeRef: Invalid value: {kind}.{GROUP} "{ref["name"]}" not found: '
                f"specified {kind[0].lower()}{kind[1:]} must be created before the TrainJob is "
                "created"
            ]
        jobs = {x["name"]: x["template"]["spec"]["template"]["spec"] for x in _jobs_of(found)}
        wrong = []
        for (_, name), pod in pods_in(after["spec"]):
            if name not in jobs:
                wrong.append(f"must not have targetJob {name} that the runtime does not have")
                continue
            names = [each["name"] for each in jobs[name]["containers"]]
            for each in pod.get("spec", {}).get("containers", []):
                if each["name"] not in names:
                    text = "must not have container that doesn't exist in the runtime job"
                    wrong.append(f"{text} {name}")
                elif each.get("env") and each["name"] == "node":
                    wrong.append("must not have envs for the node container")
        variables = [x["name"] for x in after["spec"].get("trainer", {}).get("env", [])]
        if reserved := [each for each in variables if each in _RESERVED]:
            wrong.append(f"spec.trainer.env: must not have reserved envs: {reserved}")
        return wrong

    def control(self, hands: Hands, document: Object, pods: Sequence[Object]) -> None:
        """See :meth:`Operator.control`."""
        about, spec = document["metadata"], document["spec"]
        status = copy.deepcopy(document.get("status", {}))
        conditions = status.setdefault("conditions", [])
        if about["name"] in self._removed:
            self._removed.discard(about["name"])
            self._sets.pop(about["uid"], None)
            for pod in pods:
                self.end_pod(hands, pod)
        if _holds(conditions, "Complete") or _reason(conditions, "Failed") == "DeadlineExceeded":
            return
        if spec.get("suspend"):
            self._sets.pop(about["uid"], None)
            for pod in pods:
                self.end_pod(hands, pod)
            _put(conditions, hands, "Suspended", "True", "Suspended", "TrainJob is suspended")
        elif _holds(conditions, "Suspended"):
            _put(conditions, hands, "Suspended", "False", "Resumed", "TrainJob is resumed")
        elif self._is_late(hands, document, conditions):
            for pod in pods:
                self.end_pod(hands, pod)
            text = "Trainjob exceeded its active deadline"
            _put(conditions, hands, "Failed", "True", "DeadlineExceeded", text)
        else:
            self._look_after(hands, document, pods, status)
        self.note(hands, document, {key: value for key, value in status.items() if value})

    def _is_late(self, hands: Hands, document: Object, conditions: list[Object]) -> bool:
        limit = document["spec"].get("activeDeadlineSeconds")
        since = document["metadata"]["creationTimestamp"]
        for each in conditions:
            if (each["type"], each["status"]) == ("Suspended", "False"):
                since = each["lastTransitionTime"]
        read = datetime.datetime.fromisoformat
        age = read(hands.timestamp()) - read(since)
        return limit is not None and age.total_seconds() > limit

    def _look_after(
        self, hands: Hands, document: Object, pods: Sequence[Object], status: Object
    ) -> None:
        """A step of JobSet and Job."""
        about, spec = document["metadata"], document["spec"]
        ref = spec["runtimeRef"]
        (job,) = (
            each
            for each in _jobs_of(self._runtimes[ref["kind"], ref["name"]])
            if each["template"]["metadata"]["labels"][STEP] == "trainer"
        )
        conditions = status["conditions"]
        made = self._sets.get(about["uid"])
        if made is None:  # a new one says nothing of the one before
            made = self._sets[about["uid"]] = _JobSet()
            conditions[:] = [each for each in conditions if each["type"] != "Failed"]
        nodes = spec.get("trainer", {}).get("numNodes", 1)
        self._count(made, pods)
        if made.failures > job["template"]["spec"].get("backoffLimit", 6):
            made.has_failed = True
        if made.has_failed:
            for pod in pods:
                if phase_of(pod) not in ("Succeeded", "Failed"):
                    self.end_pod(hands, pod)
            text = "jobset failed due to one or more job failures (first failed job: "
            text += f"{about['name']}-{job['name']}-0)"
            _put(conditions, hands, "Failed", "True", "FailedJobs", text)
        elif len(made.done) == nodes:
            text = "jobset completed successfully"
            _put(conditions, hands, "Complete", "True", "AllJobsCompleted", text)
        else:
            for index in sorted({*range(nodes)} - made.done):
                self._make(hands, document, job, made, index)
        active = [each for each in pods if phase_of(each) in ("", "Pending", "Running")]
        ready = [each for each in active if phase_of(each) == "Running"]
        is_over = made.has_failed or len(made.done) == nodes
        status["jobsStatus"] = [{
            "name": job["name"], "active": int(bool(active) and not is_over),
            "ready": int(len(ready) == nodes), "succeeded": int(len(made.done) == nodes),
            "failed": int(made.has_failed), "suspended": 0,
        }]  # fmt: skip

    def _count(self, made: _JobSet, pods: Sequence[Object]) -> None:
        """Take in what has become of the pods of each node."""
        there = {each["metadata"]["name"]: each for each in pods}
        made.seen |= there.keys()
        for index, name in [*made.now.items()]:
            pod = there.get(name)
            if pod is not None and phase_of(pod) == "Succeeded":
                made.done.add(index)
                del made.now[index]
            elif (pod is None and name in made.seen) or (
                pod is not None and phase_of(pod) == "Failed"
            ):
                made.failures += 1
                del made.now[index]

    def _make(self, hands: Hands, document: Object, job: Object, made: _JobSet, index: int) -> None:
        """Make the pod of a node, if it has none: its name is no other one's."""
        about = document["metadata"]
        beginning = f"{about['name']}-{job['name']}-0"
        name = made.now.setdefault(index, f"{beginning}-{index}-{uuid.uuid4().hex[:5]}")
        if name in made.seen:
            return
        labels = {
            "batch.kubernetes.io/job-name": beginning,
            "jobset.sigs.k8s.io/replicatedjob-name": job["name"],
            INDEX: str(index),
        }
        template = template_of(document["spec"], job)
        template["metadata"].setdefault("annotations", {})[INDEX] = str(index)
        nodes = document["spec"].get("trainer", {}).get("numNodes", 1)
        variables = {
            "JOB_COMPLETION_INDEX": str(index),
            "PET_NNODES": str(nodes),
            "PET_NPROC_PER_NODE": "auto",
            "PET_NODE_RANK": str(index),
            "PET_MASTER_ADDR": f"{beginning}-0.{about['name']}",
            "PET_MASTER_PORT": "29500",
        }
        self.make_pod(hands, document, template, name, labels=labels, variables=variables)


def _jobs_of(runtime: Object) -> list[Object]:
    jobs: list[Object] = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return jobs


def template_of(spec: Object, job: Object) -> Object:
    """The template of the pods of a job: the runtime's, with what a TrainJob gives them.

    Args:
        spec: of the TrainJob.
        job: of the runtime.
    """
    template: Object = copy.deepcopy(job["template"]["spec"]["template"])
    template.setdefault("metadata", {})
    template["spec"].setdefault("restartPolicy", "OnFailure")
    for (_, name), given in pods_in(spec):
        if name == job["name"]:
            _patch(template, given)
    given = spec.get("trainer", {})
    for container in template["spec"]["containers"]:
        if container["name"] == "node":
            fields = {"image": "image", "command": "command", "args": "args"}
            fields["resourcesPerNode"] = "resources"
            container |= {own: given[key] for key, own in fields.items() if key in given}
            container["env"] = _joined(container.get("env", []), given.get("env", []), "name")
    return template


def _patch(template: Object, given: Object) -> None:
    """Patch a template of pods, as Kubernetes' strategic merge does it."""
    for key, value in given.get("metadata", {}).items():
        template["metadata"][key] = {**template["metadata"].get(key, {}), **value}
    pod = template["spec"]
    for key, value in given.get("spec", {}).items():
        if key == "containers":
            for each in value:
                (own,) = (x for x in pod["containers"] if x["name"] == each["name"])
                mounts = own.get("volumeMounts", []), each.get("volumeMounts", [])
                own |= {**each, "volumeMounts": _joined(*mounts, "mountPath")}
        elif key in ("volumes", "imagePullSecrets"):
            pod[key] = _joined(pod.get(key, []), value, "name")
        else:
            pod[key] = copy.deepcopy(value)


def _joined(before: Sequence[Object], after: Sequence[Object], key: str) -> list[Object]:
    new = {each[key]: each for each in after}
    kept = [each for each in before if each[key] not in new]
    return [*kept, *copy.deepcopy(list(after))]


def _holds(conditions: Sequence[Object], type_: str) -> bool:
    return any((x["type"], x["status"]) == (type_, "True") for x in conditions)


def _reason(conditions: Sequence[Object], type_: str) -> str:
    return next((x["reason"] for x in conditions if x["type"] == type_), "")


def _put(
    conditions: list[Object], hands: Hands, type_: str, status: str, reason: str, text: str
) -> None:
    """Put a condition in the place of that of its type, whose time is that of its change."""
    old = next((each for each in conditions if each["type"] == type_), None)
    made = {"type": type_, "status": status, "reason": reason, "message": text}
    same = old is not None and old["status"] == status
    since = old["lastTransitionTime"] if old is not None and same else hands.timestamp()
    conditions[:] = [each for each in conditions if each["type"] != type_]
    conditions.append({**made, "lastTransitionTime": since})


def trainer(*given: Object, crd: Crd | None = None) -> tuple[TrainController, Keeper, Keeper]:
    """The controller, and the keepers of both kinds of runtimes.

    Args:
        given: runtimes that are there; those of agents, and the usual one, if none is given.
        crd: of TrainJobs; those of 2.3 if not given.
    """
    there = given or (runtime(), USUAL, runtime(kind="TrainingRuntime"), ON_HOSTS)
    kinds = {word: [x for x in there if x["kind"] == word] for word in _KINDS}
    keepers = [Keeper(runtimes(word), kinds[word]) for word in _KINDS]
    return (TrainController(crd or train_jobs(), there), keepers[0], keepers[1])


def trainer_operators() -> list[Operator]:
    """All of them, new."""
    return [*trainer()]
