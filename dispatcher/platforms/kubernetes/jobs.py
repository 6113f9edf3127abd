"""A Job of Kubernetes itself as an allocation. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.kubernetes.api.documents import (
    condition_of,
    mapping_in,
    sentence_of,
    text_of,
)
from dispatcher.platforms.kubernetes.api.server import JOBS, Document
from dispatcher.platforms.kubernetes.kind import KEPT_S, AllocationKind, KindStanding

if TYPE_CHECKING:
    from dispatcher.platforms.allocations.allocation import AllocationOrder
    from dispatcher.platforms.kubernetes.section import KubernetesService

#: A pod that was disturbed fails its Job: no second one is started. Servers before 1.26 drop it.
NEVER_AGAIN = {"rules": [{"action": "FailJob", "onPodConditions": [
    {"type": "DisruptionTarget", "status": "True"}]}]}  # fmt: skip

#: Why an object that is suspended has no pod, unless it says more itself.
NOT_ADMITTED = "its queue has not admitted it yet"


class JobKind(AllocationKind):
    """A Job of batch/v1 with one pod, or with one for each node of a trial."""

    resource = JOBS
    word = "Job"
    pod_label = "job-name"  # Kubernetes' own, on all its versions
    rank_variable = "JOB_COMPLETION_INDEX"  # of indexed Jobs, which servers before 1.21 do not know

    def spec_of(
        self, order: AllocationOrder, section: KubernetesService, template: dict[str, Any]
    ) -> dict[str, Any]:
        """See :meth:`AllocationKind.spec_of`."""
        spec: dict[str, Any] = {
            "backoffLimit": 0,
            "completions": order.nodes,
            "parallelism": order.nodes,
            "ttlSecondsAfterFinished": KEPT_S,
            "podFailurePolicy": NEVER_AGAIN,
            "podReplacementPolicy": "Failed",
            "template": template,
        }
        if order.nodes > 1:
            spec["completionMode"] = "Indexed"  # what drops it has no ranks, and they are claimed
        if section.queue is not None:
            spec["suspend"] = True
        return spec

    def standing(self, document: Document) -> KindStanding:
        """See :meth:`AllocationKind.standing`."""
        over = condition_of(document, "Complete", "Failed")
        if over is not None:
            return KindStanding(AllocationState.ENDED, _gone(over), sentence_of(over))
        failing = condition_of(document, "FailureTarget")
        if failing is not None:
            return KindStanding(AllocationState.WAITING, _gone(failing), sentence_of(failing))
        if mapping_in(document, "spec").get("suspend") is not True:
            return KindStanding()
        suspended = condition_of(document, "Suspended") or {}
        reason = text_of(suspended.get("message")) or NOT_ADMITTED
        return KindStanding(reason=reason, suspended=True)

    def first_pods(self, document: Document) -> int:
        """See :meth:`AllocationKind.first_pods`."""
        pods = mapping_in(document, "spec").get("parallelism", 1)
        return pods if isinstance(pods, int) else 1


def _gone(condition: Document) -> Gone:
    if condition.get("type") == "Complete":
        return Gone.FINISHED
    return Gone.WALL_TIME if condition.get("reason") == "DeadlineExceeded" else Gone.FAILED


JOB = JobKind()
"""The kind of the platform ``kubernetes``."""
