"""An AdaptDLJob as an allocation. Pure.

AdaptDL chooses nodes itself, and changes its mind: it stops all pods of a job and starts as many as
it likes elsewhere. The job is the same then, with a higher ``group``, and so are our Secret and
ticket: a rescale is no end. A pod that ends well means that the whole job is done, so that an agent
that was asked to go leaves by the exit code for which AdaptDL starts the next group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.kubernetes.api.documents import mapping_in, sentence, text_of
from dispatcher.platforms.kubernetes.api.server import Document, ObjectKind
from dispatcher.platforms.kubernetes.kind import AllocationKind, KindStanding
from trial_runtime.agent.config import Renewal

if TYPE_CHECKING:
    from dispatcher.platforms.adaptdl.section import AdaptdlSection
    from dispatcher.platforms.allocations.allocation import AllocationOrder
    from dispatcher.platforms.kubernetes.section import KubernetesService

#: The annotation of a pod with its rank, and the variables of its containers.
RANK = "adaptdl/rank"
REPLICA_RANK = "ADAPTDL_REPLICA_RANK"
NUM_RESTARTS, NUM_REPLICAS = "ADAPTDL_NUM_RESTARTS", "ADAPTDL_NUM_REPLICAS"
CHECKPOINT_PATH = "ADAPTDL_CHECKPOINT_PATH"

#: The exit code of one that comes again: that of SIGTERM.
COMES_AGAIN = 143

#: A pod gets its node before it is made. What it waits for then for so long (seconds), such as a
#: volume of a storage class that nobody has, it waits for in vain: images take minutes.
STARTS_WITHIN_S = 900.0

#: Why a job has no pods, by its phase.
_WHY = {
    "": "AdaptDL has not taken it up yet",
    "Pending": "AdaptDL has no room for it now",
    "Starting": "AdaptDL makes its pods",
    "Running": "AdaptDL is to start its pods anew",
    "Stopping": "AdaptDL stops its pods, to start them anew",
}


class AdaptdlJobKind(AllocationKind):
    """An AdaptDLJob with one pod, or with several for the nodes of a trial."""

    resource = ObjectKind("apis/adaptdl.petuum.com/v1", "adaptdljobs")
    word = "AdaptDLJob"
    controller = "AdaptDL"
    pod_label = "adaptdl/job"
    rank_variable = REPLICA_RANK
    renews_pods = True
    renewal: ClassVar[Renewal | None] = Renewal(NUM_RESTARTS, NUM_REPLICAS, COMES_AGAIN)
    starts_within_s = STARTS_WITHIN_S
    checkpoint_variable = CHECKPOINT_PATH
    removes_pods = True
    deletion: ClassVar[Literal["Foreground", "Background"]] = "Background"

    def spec_of(
        self, order: AllocationOrder, section: KubernetesService, template: dict[str, Any]
    ) -> dict[str, Any]:
        """See :meth:`AllocationKind.spec_of`. All nodes answer a probe."""
        section = cast("AdaptdlSection", section)
        least = section.min_replicas if order.config.probe is None else None
        return {
            "minReplicas": min(least or order.nodes, order.nodes),
            "maxReplicas": order.nodes,
            "preemptible": section.preemptible,
            "template": template,
        }

    def standing(self, document: Document) -> KindStanding:
        """See :meth:`AllocationKind.standing`."""
        status = mapping_in(document, "status")
        phase = text_of(status.get("phase"))
        if phase == "Succeeded":
            return KindStanding(AllocationState.ENDED, Gone.FINISHED)
        if phase == "Failed":
            reason = sentence(status.get("reason"), status.get("message"))
            return KindStanding(AllocationState.ENDED, Gone.FAILED, reason)
        if phase not in _WHY:
            return KindStanding(AllocationState.UNKNOWN, reason=phase)
        group = status.get("group")
        return KindStanding(reason=_WHY[phase], began=isinstance(group, int) and group >= 0)

    def first_pods(self, document: Document) -> int:
        """See :meth:`AllocationKind.first_pods`: at most, as all of them are renewed."""
        pods = mapping_in(document, "spec").get("maxReplicas", 1)
        return pods if isinstance(pods, int) else 1

    def rank_of(self, pod: Document) -> int:
        """See :meth:`AllocationKind.rank_of`: by an annotation."""
        about = mapping_in(mapping_in(pod, "metadata"), "annotations")
        rank = text_of(about.get(RANK))
        return int(rank) if rank.isdecimal() else 0


ADAPTDL_JOB = AdaptdlJobKind()
"""The kind of the platform ``adaptdl``."""
