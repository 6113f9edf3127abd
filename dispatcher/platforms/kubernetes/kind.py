"""The particulars of a kind of object whose pods hold an allocation. Pure.

The platform ``kubernetes`` orders Jobs. Each of its dialects orders objects of which another
controller makes pods: it brings one kind or several, and a section that chooses among them. All
that is asked of a server, and all that is read of pods, is the same for all kinds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from hashlib import blake2s
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.kubernetes.api.server import Document, ObjectKind

if TYPE_CHECKING:
    from dispatcher.platforms.allocations.allocation import AllocationOrder
    from dispatcher.platforms.kubernetes.api.server import ApiServer
    from dispatcher.platforms.kubernetes.section import KubernetesService
    from trial_runtime.agent.config import Renewal

#: How long an ended object stays if no head removes it (seconds): its reason can be read meanwhile.
KEPT_S = 24 * 3600

#: The annotation with which a server numbers the pods of an indexed Job.
_RANK = "batch.kubernetes.io/job-completion-index"


class Right(NamedTuple):
    """A right to do something with objects of a kind. Without one that is not ``needed`` people are
    told less."""

    verb: str
    kind: ObjectKind
    needed: bool = True


class KindStanding(NamedTuple):
    """How an object stands in its own words, beside which its pods say more.

    Attributes:
        state: None: its pods say it, as they nearly always do. ``ENDED``: it is over, as ``gone``
            says. ``WAITING``: it is about to end so, and its pods are being ended. ``RUNNING``:
            whatever its pods look like, the attempt goes on. ``UNKNOWN``: it stands in a word that
            nobody knows, and the last known state is kept.
        gone: how it ends. What has become of its pods comes first, unless this is ``CANCELLED``
            or ``NEVER``; what its agent has made of that does not, where its place was taken.
        reason: of that; with no state, why it has no pod yet.
        suspended: whether it is to have no pods for now: its queue has not admitted it, or not any
            more.
        began: whether it has had pods before: how long it waits for the next ones is not known.
        limit_s: how long it may last, where the object has a limit that its pods do not show.
        since: the time stamp from which that counts.
    """

    state: AllocationState | None = None
    gone: Gone | None = None
    reason: str = ""
    suspended: bool = False
    began: bool = False
    limit_s: float | None = None
    since: str = ""


def label_name(name: str, most: int) -> str:
    """Return a name as labels of RFC 1035 are: a letter comes first, and one that would be too long
    ends in a digest.

    Args:
        name: of an allocation.
        most: how many characters there is room for.
    """
    begun = name if name[0].isalpha() else f"t-{name}"
    if len(begun) <= most:
        return begun
    end = blake2s(name.encode(), digest_size=5).hexdigest()
    return f"{begun[: most - len(end) - 1].rstrip('-')}-{end}"


class AllocationKind(ABC):
    """A kind of object, one of which is an allocation: how it is written, read and stopped.

    It has no state but what a server was found to have. Its controller must make pods of the
    template that it is given, with all labels of that.

    Attributes:
        resource: where servers have such objects.
        word: the kind, as objects name it, and as people are shown it.
        controller: who makes pods of them, for people; empty: Kubernetes itself.
        pod_label: the label of pods that names their object.
        container: the name that the container of the agent must have.
        rank_variable: the variable of each pod with its rank among those of a trial.
        launches: whether its controller tells processes where the others are, by variables of its
            own (``MASTER_ADDR``), which count then.
        renews_pods: whether an attempt goes on with other pods than its first ones.
        renewal: how agents learn of that; None: they do not.
        starts_within_s: so long a pod may take to begin (seconds), where its controller has chosen
            its node: it waits for nothing then, and one that takes longer never begins.
        checkpoint_variable: a further variable with the folder of a trial's checkpoints.
        removes_pods: whether its controller may remove pods of an object that has ended.
        tells_deletions: whether its controller says so where a pod that it had was deleted by
            others: one that it has removed itself is not taken for that.
        stopping: fields given to an object that is to end; None: it is deleted at once. What has
            ended so is deleted later, and what does not end of that as well.
        deletion: what is deleted first: the pods (``Foreground``), or the object, where its
            controller would make others of one that is still there (``Background``).
        more_rights: those that a head needs beside the usual ones.
        answer_file: the file of a pod for the answer of a probe, whose end its server keeps; empty:
            it keeps the end of what a container prints, too.
        key_words: words, in lower case, of refusals of such objects, and the keys that they are
            about.
    """

    resource: ClassVar[ObjectKind]
    word: ClassVar[str]
    controller: ClassVar[str] = ""
    pod_label: ClassVar[str]
    container: ClassVar[str] = "agent"
    rank_variable: ClassVar[str] = "BEQUEATH_RANK"
    launches: ClassVar[bool] = False
    renews_pods: ClassVar[bool] = False
    renewal: ClassVar[Renewal | None] = None
    starts_within_s: ClassVar[float] = math.inf
    checkpoint_variable: ClassVar[str] = ""
    removes_pods: ClassVar[bool] = False
    tells_deletions: ClassVar[bool] = False
    stopping: ClassVar[Document | None] = None
    deletion: ClassVar[Literal["Foreground", "Background"]] = "Foreground"
    more_rights: ClassVar[tuple[Right, ...]] = ()
    answer_file: ClassVar[str] = ""
    key_words: ClassVar[tuple[tuple[str, str], ...]] = ()

    def served_by(self, server: ApiServer, section: KubernetesService) -> AllocationKind:
        """Return this kind as a server has it, before its first object is ordered: where the fields
        differ between versions, or are made of other objects, the server is asked.

        Args:
            server: the namespace.
            section: the service's part of the file.

        Raises:
            BackendError: it has none that would do, or cannot be asked.
        """
        return self

    @abstractmethod
    def spec_of(
        self, order: AllocationOrder, section: KubernetesService, template: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the ``spec`` of the object of an order.

        Args:
            order: with the configuration and the environment as they are to be there.
            section: the service's part of the file.
            template: of a pod. It may be changed, and copied for each role; its container has
                :attr:`container` as its name already.
        """
        ...

    @abstractmethod
    def standing(self, document: Document) -> KindStanding:
        """Read how an object stands, by its status. A document has any form."""
        ...

    @abstractmethod
    def first_pods(self, document: Document) -> int:
        """How many pods an object has at first: any other one is a second start."""
        ...

    def object_name(self, name: str) -> str:
        """The name of the object of an allocation, where names of that are no names of this."""
        return name

    def rank_of(self, pod: Document) -> int:
        """The rank of a pod among those of its trial, as far as the server numbers them."""
        rank = (pod["metadata"].get("annotations") or {}).get(_RANK, "0")
        return int(rank) if str(rank).isdecimal() else 0
