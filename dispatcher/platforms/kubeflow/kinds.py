"""PyTorchJobs and TFJobs as allocations. Pure.

The operator makes a missing pod anew as long as a job goes on, whatever its policies say: that is a
second start, which is seen by the pods that were there first. At the first pod that fails it fails
the job, and may remove all of its pods before anybody has read their logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.kubernetes.api.documents import (
    condition_of,
    conditions_of,
    label_of,
    mapping_in,
    sentence_of,
    text_of,
)
from dispatcher.platforms.kubernetes.api.server import Document, ObjectKind
from dispatcher.platforms.kubernetes.jobs import NOT_ADMITTED
from dispatcher.platforms.kubernetes.kind import (
    KEPT_S,
    AllocationKind,
    KindStanding,
    label_name,
)
from dispatcher.platforms.kubernetes.roles import template_of

if TYPE_CHECKING:
    from dispatcher.platforms.allocations.allocation import AllocationOrder
    from dispatcher.platforms.kubeflow.section import KubeflowSection
    from dispatcher.platforms.kubernetes.section import KubernetesService

#: Labels that the operator gives to pods.
JOB_NAME = "training.kubeflow.org/job-name"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"

#: The proxies of a mesh, which namespaces of Kubeflow have by default, would outlive the agent.
NO_PROXY = {"sidecar.istio.io/inject": "false"}

#: Longest name: the operator makes a Service for each pod, as `NAME-evaluator-0`, whose name has 63
#: characters at most.
LONGEST_NAME = 48

#: More pods than a role has.
_MANY = 100_000

#: Conditions in which a job goes on.
_GOES_ON = ("Created", "Running", "Suspended")

_API = "apis/kubeflow.org/v1"


class TrainingJobKind(AllocationKind):
    """A kind of the Training Operator.

    Attributes:
        specs: the field with the pods of each role.
        names: of roles in that field.
    """

    controller = "the Kubeflow Training Operator v1.9"
    pod_label = JOB_NAME
    launches = True
    removes_pods = True
    specs: ClassVar[str]
    names: ClassVar[Mapping[str, str]]

    def spec_of(
        self, order: AllocationOrder, section: KubernetesService, template: dict[str, Any]
    ) -> dict[str, Any]:
        """See :meth:`AllocationKind.spec_of`."""
        section = cast("KubeflowSection", section)
        policy: dict[str, Any] = {
            **section.run_policy,
            "backoffLimit": 0,
            "cleanPodPolicy": "None",
            "ttlSecondsAfterFinished": KEPT_S,
        }
        if section.queue is not None:
            policy["suspend"] = True
        template["metadata"]["annotations"] = dict(NO_PROXY)
        # The operator warns of a policy of a pod, which its role decides: people would be shown it.
        del template["spec"]["restartPolicy"]
        roles = section.roles_of(order.nodes)
        if order.nodes > 1:
            field = {"fieldPath": f"metadata.labels['{REPLICA_INDEX}']"}
            rank = {"name": self.rank_variable, "valueFrom": {"fieldRef": field}}
            template["spec"]["containers"][0]["env"].append(rank)
        return {
            "runPolicy": policy,
            self.specs: {
                self.names[role.name]: {
                    "replicas": role.replicas,
                    "restartPolicy": "Never",
                    "template": template_of(role, template, section, order.nodes),
                }
                for role in roles
            },
        }

    def standing(self, document: Document) -> KindStanding:
        """See :meth:`AllocationKind.standing`."""
        over = condition_of(document, "Succeeded", "Failed")
        if over is not None:
            gone = Gone.FINISHED if over.get("type") == "Succeeded" else Gone.FAILED
            return KindStanding(AllocationState.ENDED, gone, sentence_of(over))
        again = condition_of(document, "Restarting")
        if again is not None:  # its next pods are no place of ours
            return KindStanding(AllocationState.WAITING, Gone.FAILED, sentence_of(again))
        suspended = condition_of(document, "Suspended")
        if suspended is not None:
            reason = text_of(suspended.get("message")) or NOT_ADMITTED
            return KindStanding(reason=reason, suspended=True)
        holds = [each for each in conditions_of(document) if each.get("status") == "True"]
        if holds and condition_of(document, *_GOES_ON) is None:
            return KindStanding(AllocationState.UNKNOWN, reason=text_of(holds[-1].get("type")))
        policy = mapping_in(mapping_in(document, "spec"), "runPolicy")
        waits = policy.get("suspend") is True
        return KindStanding(reason=NOT_ADMITTED if waits else "", suspended=waits)

    def first_pods(self, document: Document) -> int:
        """See :meth:`AllocationKind.first_pods`: those of all roles."""
        specs = mapping_in(mapping_in(document, "spec"), self.specs)
        pods = (mapping_in(specs, role).get("replicas", 1) for role in specs)
        return sum(each for each in pods if isinstance(each, int))

    def object_name(self, name: str) -> str:
        """See :meth:`AllocationKind.object_name`: a letter comes first, as in names of Services,
        and there is room for the end of these."""
        return label_name(name, LONGEST_NAME)

    def rank_of(self, pod: Document) -> int:
        """See :meth:`AllocationKind.rank_of`: of those of a role, behind all of the role before."""
        order = [each.lower() for each in self.names.values()]
        role, index = label_of(pod, REPLICA_TYPE), label_of(pod, REPLICA_INDEX)
        place = order.index(role) if role in order else len(order)
        return place * _MANY + (int(index) if index.isdecimal() else 0)


class PyTorchJobKind(TrainingJobKind):
    """A PyTorchJob: a master, which is rank 0, and workers."""

    resource = ObjectKind(_API, "pytorchjobs")
    word = "PyTorchJob"
    container = "pytorch"
    specs = "pytorchReplicaSpecs"
    names: ClassVar[Mapping[str, str]] = {"master": "Master", "worker": "Worker"}


class TFJobKind(TrainingJobKind):
    """A TFJob: workers, of which the first speaks unless there is a chief, and others."""

    resource = ObjectKind(_API, "tfjobs")
    word = "TFJob"
    container = "tensorflow"
    specs = "tfReplicaSpecs"
    names: ClassVar[Mapping[str, str]] = {
        "chief": "Chief",
        "worker": "Worker",
        "ps": "PS",
        "evaluator": "Evaluator",
    }


KINDS: Mapping[str, TrainingJobKind] = {kind.word: kind for kind in (PyTorchJobKind(), TFJobKind())}
"""The kinds of the platform ``kubeflow``, by their words."""
