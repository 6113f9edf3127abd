"""A Framework as an allocation. Pure.

FrameworkController makes a pod for each task of each role, of the template of that role, and
numbers the tasks of a role from 0. It deletes a pod when that has ended, notes how it did, and
deletes all others when the attempt is over. Its retries are switched off: each try is a trial's
next attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2s
from typing import TYPE_CHECKING, Any, ClassVar, cast

from dispatcher.platforms.allocations.allocation import AllocationState
from dispatcher.platforms.frameworkcontroller.completion import completion_of
from dispatcher.platforms.kubernetes.api.documents import mapping_in, mappings_in, text_of
from dispatcher.platforms.kubernetes.api.server import Document, ObjectKind
from dispatcher.platforms.kubernetes.kind import AllocationKind, KindStanding
from dispatcher.platforms.kubernetes.roles import Role, template_of
from trial_runtime.agent.nodes.meeting import OFFSET_VARIABLE

if TYPE_CHECKING:
    from dispatcher.platforms.allocations.allocation import AllocationOrder
    from dispatcher.platforms.frameworkcontroller.section import FrameworkSection
    from dispatcher.platforms.kubernetes.section import KubernetesService

#: The number of a task in its role: an annotation of its pod, and a variable of its containers.
TASK_INDEX = "FC_TASK_INDEX"

NEVER_AGAIN: Mapping[str, Any] = {"fancyRetryPolicy": False, "maxRetryCount": 0}

#: States before the end of an attempt. Its pods say more, once there are any.
_GOES_ON = (
    "AttemptCreationPending",
    "AttemptCreationRequested",
    "AttemptPreparing",
    "AttemptRunning",
)

#: States between the end of an attempt and that of the Framework, which decides: it comes next.
_ENDS = (
    "AttemptDeletionPending",
    "AttemptDeletionRequested",
    "AttemptDeleting",
    "AttemptCompleted",
)

_UNSEEN = "FrameworkController has not taken it up yet"


class FrameworkKind(AllocationKind):
    """A Framework: one task for each node of a trial, in one role or several."""

    resource = ObjectKind("apis/frameworkcontroller.microsoft.com/v1", "frameworks")
    word = "Framework"
    controller = "FrameworkController"
    pod_label = "FC_FRAMEWORK_NAME"
    rank_variable = TASK_INDEX
    removes_pods = True
    stopping: ClassVar[Document | None] = {"spec": {"executionType": "Stop"}}

    def spec_of(
        self, order: AllocationOrder, section: KubernetesService, template: dict[str, Any]
    ) -> dict[str, Any]:
        """See :meth:`AllocationKind.spec_of`."""
        section = cast("FrameworkSection", section)
        return {
            "executionType": "Start",
            "retryPolicy": dict(NEVER_AGAIN),
            "taskRoles": [
                _role_of(role, template_of(role, template, section, order.nodes))
                for role in section.roles_of(order.nodes)
            ],
        }

    def standing(self, document: Document) -> KindStanding:
        """See :meth:`AllocationKind.standing`."""
        status = mapping_in(document, "status")
        state = text_of(status.get("state"))
        if state == "Completed":
            gone, reason = completion_of(mapping_in(status, "attemptStatus"))
            return KindStanding(AllocationState.ENDED, gone, reason)
        if not state:
            return KindStanding(reason=_UNSEEN)
        if state in _GOES_ON:
            return KindStanding(reason=f"FrameworkController has made no pod of it yet: {state}")
        return KindStanding(AllocationState.UNKNOWN, reason="" if state in _ENDS else state)

    def first_pods(self, document: Document) -> int:
        """See :meth:`AllocationKind.first_pods`: those of all roles."""
        roles = mappings_in(mapping_in(document, "spec"), "taskRoles")
        tasks = (each.get("taskNumber") for each in roles)
        return sum(each for each in tasks if isinstance(each, int))

    def object_name(self, name: str) -> str:
        """See :meth:`AllocationKind.object_name`: names of Frameworks have no dashes. Two names may
        be one without them, so that a digest follows."""
        digest = blake2s(name.encode(), digest_size=4).hexdigest()
        return f"{name.replace('-', '')}{digest}"

    def rank_of(self, pod: Document) -> int:
        """See :meth:`AllocationKind.rank_of`: its number, behind those of the roles before."""
        about = mapping_in(mapping_in(pod, "metadata"), "annotations")
        index = text_of(about.get(TASK_INDEX))
        before = 0
        for container in mappings_in(mapping_in(pod, "spec"), "containers"):
            for each in mappings_in(container, "env"):
                value = text_of(each.get("value"))
                if each.get("name") == OFFSET_VARIABLE and value.isdecimal():
                    before = int(value)
        return before + (int(index) if index.isdecimal() else 0)


def _role_of(role: Role, template: Mapping[str, Any]) -> dict[str, Any]:
    """One role of the spec. A task that fails ends the attempt, and so does the first role when all
    of it has ended well: it speaks for the others, which may be servers that never end."""
    speaks = role.first_rank == 0
    return {
        "name": role.name,
        "taskNumber": role.replicas,
        "frameworkAttemptCompletionPolicy": {
            "minFailedTaskCount": 1,
            "minSucceededTaskCount": role.replicas if speaks else -1,
        },
        "task": {"retryPolicy": dict(NEVER_AGAIN), "pod": template},
    }


FRAMEWORK = FrameworkKind()
"""The kind of the platform ``frameworkcontroller``."""
