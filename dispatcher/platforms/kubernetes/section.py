"""The training service ``kubernetes``: how the file describes the pods in which trials run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, model_validator

from dispatcher.experiment.fields import (
    ResolvedPath,
    Section,
    Switch,
    Text,
    choice_reader,
)
from dispatcher.experiment.problems import Misfit
from dispatcher.platforms.allocations.section import Line, WallTime
from dispatcher.platforms.clusters.section import ClusterService

if TYPE_CHECKING:
    from dispatcher.platforms.kubernetes.kind import AllocationKind

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][0-9]+)?")
_RESOURCE = re.compile(r"([A-Za-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_NFS = re.compile(r"(?P<server>\[[^\]]+\]|[^:/\s]+):(?P<path>/\S*)")

#: Fields of a pod that are ours, and what to write in their place.
OURS_IN_PODS = {
    "restartPolicy": "each try is a trial's next attempt, which `retries` counts",
    "activeDeadlineSeconds": "write 'wallTime'",
    "terminationGracePeriodSeconds": "write 'trialStopGrace'",
    "containers": "one more would keep a pod alive when its agent has left; write 'container' for "
    "further fields of ours",
    "volumes": "write 'volumes' beside 'image'",
    "imagePullSecrets": "write it beside 'image'",
    "serviceAccountName": "write 'serviceAccount'",
    "nodeSelector": "write it beside 'image'",
    "tolerations": "write it beside 'image'",
    "priorityClassName": "write 'priorityClass'",
}
OURS_IN_CONTAINERS = {
    "name": "it is ours",
    "image": "write it beside 'platform'",
    "imagePullPolicy": "write it beside 'image'",
    "command": "it starts the agent; trials have 'trialCommand'",
    "args": "they start the agent; trials have 'trialCommand'",
    "env": "write 'environment'",
    "resources": "write 'requests' and 'limits'",
    "volumeMounts": "write 'volumes'",
}


def _check_label(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise ValueError(f"must be lower-case letters, digits and '-', at most 63, not {text!r}")
    return text


def _check_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"must be the name of an object of Kubernetes, not {text!r}")
    return text


def _check_image(text: str) -> str:
    if not text.isprintable() or " " in text:
        raise ValueError(f"must be an image, as registry/name:tag, not {text!r}")
    return text


def _check_path(text: str) -> str:
    if not text.startswith("/") or ".." in text.split("/") or not text.isprintable():
        raise ValueError(f"must be a path from the root of the pod, not {text!r}")
    return text.rstrip("/") or "/"


def _check_inner_path(text: str) -> str:
    if text.startswith("/") or ".." in text.split("/") or not text.isprintable():
        raise ValueError(f"must be a path below the volume, not {text!r}")
    return text.rstrip("/")


def _read_quantity(value: object) -> str:
    """Read Kubernetes' own notation: 4, 0.5, 500m, 16Gi."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = format(value, "g") if isinstance(value, float) else str(value)
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value.strip()):
        raise ValueError(f"must be a quantity of Kubernetes, as 4, 500m or 16Gi, not {value!r}")
    return value.strip()


def _check_resource(name: str) -> str:
    if not _RESOURCE.fullmatch(name):
        raise ValueError(f"has the name {name!r}; write cpu, memory or one as nvidia.com/gpu")
    return name


def _check_node_label(text: str) -> str:
    if not _RESOURCE.fullmatch(text):
        raise ValueError(f"has {text!r}, which is no name of a label of Kubernetes")
    return text


def _check_node_value(text: str) -> str:
    if text and not _LABEL_VALUE.fullmatch(text):
        raise ValueError(f"has {text!r}, which is no value of a label of Kubernetes")
    return text


def _check_json(value: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise ValueError("has a value that no JSON holds, such as .nan or a date") from error
    return value


Fields = Annotated[dict[str, Any], AfterValidator(_check_json)]
Image = Annotated[Text, AfterValidator(_check_image)]
Label = Annotated[Text, AfterValidator(_check_label)]
Name = Annotated[Text, AfterValidator(_check_name)]
PathThere = Annotated[Text, AfterValidator(_check_path)]
Quantity = Annotated[str, PlainValidator(_read_quantity)]
Quantities = dict[Annotated[Text, AfterValidator(_check_resource)], Quantity]


class VolumeConfig(Section):
    """One volume of the pods: exactly one of `claim`, `nfs`, `hostPath` and `scratch`."""

    at: Annotated[PathThere, Field(description="Path at which pods have it.")]
    claim: Annotated[
        Name | None, Field(description="Name of a PersistentVolumeClaim of the namespace.")
    ] = None
    nfs: Annotated[
        Text | None, Field(description="Export of an NFS server, as `host:/export/path`.")
    ] = None
    host_path: Annotated[
        PathThere | None, Field(description="Folder of the node, the same on all of them.")
    ] = None
    scratch: Annotated[
        Quantity | None,
        Field(description="An empty folder that goes with the pod: its size at most, as `50Gi`."),
    ] = None
    sub_path: Annotated[
        Annotated[Text, AfterValidator(_check_inner_path)] | None,
        Field(description="Folder of the volume that is mounted, in place of all of it."),
    ] = None
    read_only: Annotated[Switch, Field(description="Whether pods only read it.")] = False

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = {
            "claim": self.claim,
            "nfs": self.nfs,
            "hostPath": self.host_path,
            "scratch": self.scratch,
        }
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            names = " and ".join(named) or "none of 'claim', 'nfs', 'hostPath' and 'scratch'"
            raise Misfit(f"names {names}, and a volume is one of them")
        if self.nfs is not None and not _NFS.fullmatch(self.nfs):
            raise Misfit(f"has an 'nfs' that must be HOST:/PATH, not {self.nfs!r}", at=("nfs",))
        return self

    @property
    def source(self) -> dict[str, Any]:
        """The volume as a pod has it."""
        if self.claim is not None:
            return {"persistentVolumeClaim": {"claimName": self.claim}}
        if self.host_path is not None:
            return {"hostPath": {"path": self.host_path, "type": "Directory"}}
        if self.scratch is not None:
            return {"emptyDir": {"sizeLimit": self.scratch}}
        export = _NFS.fullmatch(self.nfs or "")
        assert export is not None
        return {"nfs": {"server": export["server"].strip("[]"), "path": export["path"]}}

    @property
    def mount(self) -> dict[str, Any]:
        """How a container has it; the name of the volume is to be added."""
        mount: dict[str, Any] = {"mountPath": self.at}
        if self.sub_path is not None:
            mount["subPath"] = self.sub_path
        if self.read_only:
            mount["readOnly"] = True
        return mount


_read_policy = choice_reader("Always", "IfNotPresent", "Never")
PullPolicy = Annotated[Literal["Always", "IfNotPresent", "Never"], BeforeValidator(_read_policy)]


class KubernetesService(ClusterService):
    """Run trials in pods of a Kubernetes cluster: what all kinds of objects have in common of which
    such pods are made."""

    other_names: ClassVar[Mapping[str, str]] = {
        **ClusterService.other_names,
        "dockerImage": "image",
        "shmSize": "sharedMemory",
    }

    image: Annotated[
        Image, Field(description="Image of the pods, with a Python and what trials import.")
    ]
    kubeconfig: Annotated[
        ResolvedPath | None,
        Field(
            description="Kubeconfig; if not given, those of `KUBECONFIG`, `~/.kube/config`, or the "
            "account of the pod that the head runs in."
        ),
    ] = None
    context: Annotated[
        Text | None, Field(description="Context of the kubeconfig; its current one if not given.")
    ] = None
    namespace: Annotated[
        Label | None, Field(description="Namespace; that of the context if not given.")
    ] = None
    image_pull_secrets: Annotated[
        tuple[Name, ...], Field(description="Secrets by which nodes may pull the image.")
    ] = ()
    image_pull_policy: Annotated[
        PullPolicy | None, Field(description="When nodes pull the image: the cluster's own rule.")
    ] = None
    service_account: Annotated[
        Name | None,
        Field(description="Account of the pods, whose token they see; none if not given."),
    ] = None
    requests: Annotated[
        Quantities,
        Field(description="Resources that a pod is promised, as `{cpu: 4, memory: 16Gi}`."),
    ] = Field(default_factory=dict)
    limits: Annotated[
        Quantities,
        Field(description="Most that a pod may use; GPUs by their name: `{nvidia.com/gpu: 1}`."),
    ] = Field(default_factory=dict)
    shared_memory: Annotated[
        Quantity | None,
        Field(description="Size of `/dev/shm`, which data loaders need; 64 MiB if not given."),
    ] = None
    volumes: Annotated[tuple[VolumeConfig, ...], Field(description="Volumes of the pods.")] = ()
    wall_time: Annotated[
        WallTime | None,
        Field(description="How long a pod may run from the moment when a node has taken it."),
    ] = None
    queue: Annotated[
        Name | None, Field(description="Local queue of Kueue that decides when a Job may start.")
    ] = None
    priority_class: Annotated[Name | None, Field(description="Priority class of the pods.")] = None
    node_selector: Annotated[
        dict[
            Annotated[Text, AfterValidator(_check_node_label)],
            Annotated[str, AfterValidator(_check_node_value)],
        ],
        Field(description="Labels that a node must have."),
    ] = Field(default_factory=dict)
    tolerations: Annotated[
        tuple[Fields, ...], Field(description="Taints of nodes that do not matter.")
    ] = ()
    python: Annotated[
        Line, Field(description="Python of the image, with trial_runtime and what trials import.")
    ] = "python3"
    code_folder: Annotated[
        PathThere | None,
        Field(description="Path at which pods have the code; the same as here if not given."),
    ] = None
    weights_root: Annotated[
        PathThere | None,
        Field(description="Path at which pods have `weightsRoot`; the same as here if not given."),
    ] = None
    weights_read_roots: Annotated[
        tuple[PathThere, ...],
        Field(description="Paths at which pods have `weightsReadRoots`, in the same order."),
    ] = ()
    work_folder: Annotated[
        PathThere,
        Field(description="Folder there for logs, working directories and unsent results."),
    ] = "/tmp/bequeath"  # noqa: S108 - a pod's own
    pod: Annotated[
        Fields,
        Field(description="Further fields of the pods, as Kubernetes has them."),
    ] = Field(default_factory=dict)
    container: Annotated[
        Fields,
        Field(description="Further fields of their container, as `securityContext`."),
    ] = Field(default_factory=dict)

    @classmethod
    def allocation_kinds(cls) -> Sequence[AllocationKind]:
        """All kinds of objects that allocations may be by such a section."""
        from dispatcher.platforms.kubernetes.jobs import JOB

        return (JOB,)

    @property
    def allocation_kind(self) -> AllocationKind:
        """The kind of the objects that the allocations of this service are."""
        return self.allocation_kinds()[0]

    @property
    def python_there(self) -> str:
        """See :attr:`ClusterService.python_there`."""
        return self.python

    @property
    def gpus_asked(self) -> float:
        """See :attr:`ClusterService.gpus_asked`: resources such as `nvidia.com/gpu`."""
        asked = {**self.requests, **self.limits}
        return sum(amount(each) for name, each in asked.items() if name.endswith("/gpu"))

    @property
    def wall_s(self) -> float | None:
        """See :attr:`ServiceConfig.wall_s`: that of the pods."""
        return self.wall_time

    def shares(self, path: str) -> bool:
        """Whether a path of the pods is on a volume that others may have as well."""
        holding = [x for x in self.volumes if f"{path}/".startswith(f"{x.at.rstrip('/')}/")]
        innermost = max(holding, key=lambda each: len(each.at), default=None)
        return innermost is not None and innermost.scratch is None

    @model_validator(mode="after")
    def _fit(self) -> Self:
        for key, ours in (("pod", OURS_IN_PODS), ("container", OURS_IN_CONTAINERS)):
            for field in getattr(self, key):
                if field in ours:
                    raise Misfit(
                        f"has '{key}.{field}', which bequeath writes itself",
                        at=(key, field),
                        hint=ours[field],
                    )
        places = ["/dev/shm"] if self.shared_memory is not None else []  # noqa: S108 - of a pod
        for index, volume in enumerate(self.volumes):
            if volume.at in places:
                raise Misfit(f"has two volumes at {volume.at}", at=("volumes", index, "at"))
            places.append(volume.at)
        fit_quantities(self.requests, self.limits)
        if self.wall_time is not None and self.wall_time < 1:
            raise Misfit("has a 'wallTime' of less than a second", at=("wallTime",))
        return self


def fit_quantities(
    requests: Mapping[str, str], limits: Mapping[str, str], at: tuple[str | int, ...] = ()
) -> None:
    """See whether what a pod is promised, and what it may use, fit together.

    Args:
        requests: by the name of the resource.
        limits: the same.
        at: keys that lead to the section with both.

    Raises:
        Misfit: they do not.
    """
    for key, quantities in (("requests", requests), ("limits", limits)):
        for name, quantity in quantities.items():
            if "/" in name and amount(quantity) % 1:
                text = f"has {quantity} of {name!r}, of which there are only whole ones"
                raise Misfit(text, at=(*at, key, name))
            if "/" in name and name not in limits:
                text = f"has {name!r} in 'requests' alone, which no cluster takes"
                raise Misfit(text, at=(*at, key, name), hint="write it below 'limits'")
    for name in requests.keys() & limits.keys():
        if amount(requests[name]) > amount(limits[name]):
            raise Misfit(
                f"has {requests[name]} of {name!r} in 'requests', and {limits[name]} in 'limits'",
                at=(*at, "requests", name),
                hint="a pod cannot be promised more than it may use",
            )


K = TypeVar("K", bound=KubernetesService)
"""A section whose allocations are pods of a cluster."""


class KubernetesSection(KubernetesService):
    """Run trials in Jobs of a Kubernetes cluster, each with an agent that takes many trials."""

    platform: Annotated[
        Annotated[Literal["kubernetes"], BeforeValidator(choice_reader("kubernetes"))],
        Field(description="Kind of place where trials run: `kubernetes`."),
    ]


_UNITS = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {f"{unit}i": 1024.0**power for power, unit in enumerate("KMGTPE", start=1)}


def amount(quantity: str) -> float:
    """The number that a quantity of Kubernetes stands for."""
    for unit, factor in (_BINARY | _UNITS).items():
        if quantity.endswith(unit):
            return float(quantity.removesuffix(unit)) * factor
    return float(quantity)
