"""TrainJobs as allocations. But for one question about the fields of a server: pure.

Kubeflow Trainer makes a JobSet of a TrainJob and its runtime, that makes Jobs, and those make pods.
A runtime may have all of them started again when they fail, and a TrainJob that has failed starts
anew when its JobSet is removed: these are second starts, and no place of ours.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.kubernetes.api.documents import (
    condition_of,
    conditions_of,
    mapping_in,
    mappings_in,
    sentence_of,
    text_of,
)
from dispatcher.platforms.kubernetes.api.errors import NotAllowed, NotThere
from dispatcher.platforms.kubernetes.api.server import Document, ObjectKind
from dispatcher.platforms.kubernetes.bodies import QUEUE
from dispatcher.platforms.kubernetes.jobs import NOT_ADMITTED
from dispatcher.platforms.kubernetes.kind import AllocationKind, KindStanding, Right, label_name
from dispatcher.platforms.trainer.fields import (
    NEWEST,
    OVERRIDES,
    PATCHES,
    PodFields,
    fields_in,
    job_in,
)
from dispatcher.platforms.trainer.runtimes import (
    API_VERSION,
    NODE,
    RUNTIMES,
    job_of,
    problem_of,
)

if TYPE_CHECKING:
    from dispatcher.platforms.allocations.allocation import AllocationOrder
    from dispatcher.platforms.kubernetes.api.server import ApiServer
    from dispatcher.platforms.kubernetes.section import KubernetesService
    from dispatcher.platforms.trainer.section import TrainerSection

#: Fields of pods that are the runtime's where a TrainJob has none: agents live with what it says.
_LEFT_TO_RUNTIMES = frozenset({
    "activeDeadlineSeconds",  # the TrainJob has a limit itself
    "automountServiceAccountToken", "enableServiceLinks", "restartPolicy",
    "terminationGracePeriodSeconds",
})  # fmt: skip

#: The same of their container, and those that are the trainer's.
_LEFT_IN_CONTAINERS = frozenset({"terminationMessagePolicy"})
_OF_TRAINERS = frozenset({"args", "command", "env", "image", "name", "resources"})

#: Keys of fields that differ between versions.
_KEYS = {
    "imagePullSecrets": "imagePullSecrets",
    "nodeSelector": "nodeSelector",
    "serviceAccountName": "serviceAccount",
    "tolerations": "tolerations",
}

#: Longest name: of 63 characters JobSet needs the rest for names of pods, as `NAME-node-0-0-abcde`:
#: the job of the runtime may have a longer name, and there may be more pods.
LONGEST_NAME = 40

#: Hints to those who run a cluster.
INSTALL = "its administrators install Kubeflow Trainer 2.1 or later"


class TrainJobKind(AllocationKind):
    """A TrainJob of Kubeflow Trainer v2.

    Args:
        fields: what those of a server can give their pods.
    """

    resource = ObjectKind(f"apis/{API_VERSION}", "trainjobs")
    word = "TrainJob"
    controller = "Kubeflow Trainer 2.1 or later"
    pod_label = "jobset.sigs.k8s.io/jobset-name"
    container = NODE
    rank_variable = "JOB_COMPLETION_INDEX"  # the Jobs of JobSets are indexed
    launches = True
    removes_pods = True
    more_rights: ClassVar[tuple[Right, ...]] = (
        Right("get", RUNTIMES["TrainingRuntime"], needed=False),
    )
    answer_file = "/dev/termination-log"
    key_words: ClassVar[tuple[tuple[str, str], ...]] = (
        ("runtimeref", "runtimeRef"),
        ("trainingruntime", "runtimeRef"),
        ("activedeadlineseconds", "wallTime"),
        ("imagepullsecrets", "imagePullSecrets"),
        ("'pod.", "pod"),
        ("'container.", "container"),
    )

    def __init__(self, fields: PodFields = NEWEST) -> None:
        self._fields = fields

    def served_by(self, server: ApiServer, section: KubernetesService) -> AllocationKind:
        """See :meth:`AllocationKind.served_by`: by the schema of a server, and the runtime."""
        section = cast("TrainerSection", section)
        schema = server.schemas(self.resource.api).get(self.word)
        if schema is None:
            raise _not_there(server, self.resource)
        fields = fields_in(schema)
        if fields is None:
            text = f"its TrainJobs have neither {PATCHES!r} nor {OVERRIDES!r}, by which pods get "
            text += "their volumes and labels"
            raise PermanentBackendError(text, hint=INSTALL, where=server.where)
        runtime = _runtime(server, section)
        if runtime is None:
            return TrainJobKind(fields)
        if trouble := problem_of(runtime):
            text = f"the {_named(section)} {trouble}"
            hint = "name another one in 'runtimeRef', as 'torch-distributed'"
            raise PermanentBackendError(text, hint=hint, where=server.where)
        return TrainJobKind(replace(fields, job=job_of(runtime)))

    def spec_of(
        self, order: AllocationOrder, section: KubernetesService, template: dict[str, Any]
    ) -> dict[str, Any]:
        """See :meth:`AllocationKind.spec_of`. Raises ``PermanentBackendError``: something that the
        file asks for has no field."""
        section = cast("TrainerSection", section)
        (container,) = template["spec"]["containers"]
        program, *arguments = container["command"]
        # Both are given: what is not is the runtime's, and its arguments would follow our program.
        trainer = {
            "image": container["image"],
            "command": [program],
            "args": arguments,
            "numNodes": order.nodes,
        }
        resources = {key: value for key, value in container["resources"].items() if value}
        optional = {"env": container["env"], "resourcesPerNode": resources}
        trainer |= {key: value for key, value in optional.items() if value}
        spec: dict[str, Any] = {
            "runtimeRef": {
                "apiGroup": self.resource.group,
                "kind": section.runtime_ref.kind,
                "name": section.runtime_ref.name,
            },
            "trainer": trainer,
            **self._fields.given(template["metadata"]["labels"], self._patch(template["spec"])),
        }
        if section.wall_time is not None:
            if not self._fields.has_limit:
                text = "its TrainJobs have no 'activeDeadlineSeconds', which 'wallTime' is there"
                hint = "leave 'wallTime' out, or have Kubeflow Trainer 2.2 or later installed"
                raise PermanentBackendError(text, hint=hint)
            spec["activeDeadlineSeconds"] = math.ceil(section.wall_time)
        if section.queue is not None:
            spec["suspend"] = True
        return spec

    def _patch(self, pod: dict[str, Any]) -> dict[str, Any]:
        """The fields of a pod that are not the runtime's."""
        (container,) = pod["containers"]
        own = {key: value for key, value in container.items() if key not in _OF_TRAINERS}
        wanted = _known(own, self._fields.container, _LEFT_IN_CONTAINERS, "container")
        patch = {"name": NODE, **wanted}
        return _known(pod, self._fields.pod, _LEFT_TO_RUNTIMES, "pod") | {"containers": [patch]}

    def standing(self, document: Document) -> KindStanding:
        """See :meth:`AllocationKind.standing`."""
        over = condition_of(document, "Complete", "Failed")
        if over is not None:
            return KindStanding(AllocationState.ENDED, _gone(over), sentence_of(over))
        spec = mapping_in(document, "spec")
        reason, suspended = "", spec.get("suspend") is True
        if suspended:
            labels = mapping_in(mapping_in(document, "metadata"), "labels")
            reason = NOT_ADMITTED if QUEUE in labels else "it is suspended"
        elif first := self._first_jobs(document):
            reason = f"of its runtime {', '.join(first)} runs first"
        limit = spec.get("activeDeadlineSeconds")
        limit_s = float(limit) if isinstance(limit, int) else None
        since = _since(document)
        return KindStanding(reason=reason, suspended=suspended, limit_s=limit_s, since=since)

    def _first_jobs(self, document: Document) -> list[str]:
        """The jobs of the runtime that run while ours does not: they prepare something. Ours is
        the one that the TrainJob names: the head that has made it may have been another one."""
        ours = job_in(mapping_in(document, "spec")) or self._fields.job
        jobs = mappings_in(mapping_in(document, "status"), "jobsStatus")
        active = [text_of(each.get("name")) for each in jobs if each.get("active")]
        return active if ours not in active else []

    def first_pods(self, document: Document) -> int:
        """See :meth:`AllocationKind.first_pods`."""
        nodes = mapping_in(mapping_in(document, "spec"), "trainer").get("numNodes", 1)
        return nodes if isinstance(nodes, int) else 1

    def object_name(self, name: str) -> str:
        """See :meth:`AllocationKind.object_name`: a letter comes first, and there is room for the
        names of pods: of a longer one no pod would ever be made."""
        return label_name(name, LONGEST_NAME)


def _known(
    given: dict[str, Any], known: frozenset[str], left: frozenset[str], key: str
) -> dict[str, Any]:
    """The fields that a TrainJob has. Raises ``PermanentBackendError``: it lacks one that is
    needed."""
    lacking = [each for each in given if each not in known and each not in left]
    if lacking:
        word = _KEYS.get(lacking[0], f"{key}.{lacking[0]}")
        text = f"its TrainJobs have no field for {word!r}"
        hint = "have it in the training runtime, or a later Kubeflow Trainer installed"
        raise PermanentBackendError(text, hint=hint)
    return {name: value for name, value in given.items() if name in known}


def _not_there(server: ApiServer, kind: ObjectKind) -> BackendError:
    """The error of a server without the fields of a kind: it has none of these objects, or only
    since a moment."""
    with contextlib.suppress(NotThere):
        if kind.plural in server.plurals(kind.api):
            text = f"it does not publish the fields of {kind.plural} yet"
            return PassingBackendError(text, where=server.where)
    text = f"it has no TrainJobs of {API_VERSION}"
    return PermanentBackendError(text, hint=INSTALL, where=server.where)


def _runtime(server: ApiServer, section: TrainerSection) -> Document | None:
    """The runtime; None where it may not be read. Raises ``BackendError``: there is none."""
    try:
        return server.get(RUNTIMES[section.runtime_ref.kind], section.runtime_ref.name)
    except NotAllowed:
        return None
    except NotThere as error:
        where = f" in {server.namespace!r}" if section.runtime_ref.kind == "TrainingRuntime" else ""
        text = f"there is no {_named(section)}{where}"
        hint = f"`kubectl get {RUNTIMES[section.runtime_ref.kind].plural}` lists them"
        raise PermanentBackendError(text, hint=hint, where=error.where) from error


def _named(section: TrainerSection) -> str:
    return f"{section.runtime_ref.kind} {section.runtime_ref.name!r}"


def _gone(condition: Document) -> Gone:
    if condition.get("type") == "Complete":
        return Gone.FINISHED
    ends = {
        "DeadlineExceeded": Gone.WALL_TIME,
        "TrainingRuntimeNotSupported": Gone.NEVER,
    }
    return ends.get(text_of(condition.get("reason")), Gone.FAILED)


def _since(document: Document) -> str:
    """From when a limit counts: since it was admitted, or made."""
    for each in conditions_of(document):
        if each.get("type") == "Suspended" and each.get("status") == "False":
            return text_of(each.get("lastTransitionTime"))
    return text_of(mapping_in(document, "metadata").get("creationTimestamp"))


TRAIN_JOB = TrainJobKind()
"""The kind of the platform ``trainer``, with the fields of the newest version."""
