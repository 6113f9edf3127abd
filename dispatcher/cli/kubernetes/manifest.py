"""The objects by which a head runs in the cluster in which its trials run. Pure.

One Deployment of one pod with a volume for the experiment's folder: a head that dies, or whose node
does, is started anew and goes on. Its rights are those that are asked for in every namespace.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from dispatcher.experiment.addresses import has_port, is_any, is_loopback
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.references import ENV, FILE
from dispatcher.experiment.source import Source
from dispatcher.platforms.kubernetes.api.access import NAMESPACE
from dispatcher.platforms.kubernetes.kind import AllocationKind
from dispatcher.platforms.kubernetes.rights import role_of
from dispatcher.platforms.kubernetes.section import KubernetesService, VolumeConfig
from tuners.plain_json import JsonPath

#: Where the head's pod has its experiments and its file.
STATE_FOLDER, FILE_FOLDER = "/var/lib/bequeath", "/etc/bequeath"

#: The size of the volume of experiments. Weights lie elsewhere.
STATE_SIZE = "10Gi"

#: What the head's container is promised; its tuner may need more.
REQUESTS = {"cpu": "250m", "memory": "512Mi"}

#: The largest file that a ConfigMap holds beside its own fields (bytes).
MOST_BYTES = 900_000

#: Fields that a pod of the head has as those of the trials: what their image and network need.
_AS_TRIALS = ("securityContext", "hostAliases", "dnsPolicy", "dnsConfig")

#: A name of a Service is one of DNS, and pods get some letters more.
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,46}[a-z0-9])?")
_KEY = re.compile(r"[A-Za-z0-9._-]+")
_NO_REFERENCES_BELOW = ("searchspace", "classargs")

_INSTANCE = "app.kubernetes.io/instance"


class FileProblem(NamedTuple):
    """An obstacle to running a file in a pod: the path of its value, a sentence that goes on behind
    the key, and what to do."""

    path: JsonPath
    text: str
    hint: str


@dataclass(frozen=True, slots=True)
class HeadPlan:
    """A head that is to run in a cluster.

    Attributes:
        source: the experiment file as it is written.
        config: the experiment.
        file_name: of the file in the pod.
        files: the texts that the pod needs, by their names: the file and a search space beside it.
        name: of all objects.
        namespace: of all objects but the rights, which are in that of the trials.
        image: of the head; None: that of the trials.
        storage_class: of the volume of experiments; None: the cluster's own choice.
    """

    source: Source
    config: ExperimentConfig
    file_name: str
    files: Mapping[str, str]
    name: str
    namespace: str
    image: str | None = None
    storage_class: str | None = None

    @property
    def sections(self) -> list[KubernetesService]:
        """The services whose trials run in a cluster."""
        return [each for each in self.config.services if isinstance(each, KubernetesService)]

    def kinds_in(self, namespace: str) -> list[AllocationKind]:
        """The kinds of objects that the trials of a namespace run in."""
        there = (x for x in self.sections if (x.namespace or self.namespace) == namespace)
        return list(dict.fromkeys(each.allocation_kind for each in there))

    @property
    def variables(self) -> list[str]:
        """The variables that the file refers to, which come from a Secret."""
        found = [text.removeprefix(ENV) for _, text in _texts(self.source.value, ())
                 if text.startswith(ENV)]  # fmt: skip
        return sorted(dict.fromkeys(found))

    @property
    def secret(self) -> str:
        """The name of the Secret with the values of :attr:`variables`."""
        return f"{self.name}-secrets"

    @property
    def volumes(self) -> list[VolumeConfig]:
        """The volumes of the trials' pods that the head has, too: not those that go with a pod."""
        by_place = {
            volume.at: volume
            for section in reversed(self.sections)
            for volume in section.volumes
            if volume.scratch is None
        }
        return list(by_place.values())


def file_key(name: str, beside: Collection[str] = ()) -> str:
    """The name under which the pod has the experiment file: its own, or a usual one.

    Args:
        name: of the file.
        beside: names of files that come with it.
    """
    if _KEY.fullmatch(name):
        return name
    return next(each for each in ("experiment.yml", "the-experiment.yml") if each not in beside)


def usual_name(experiment: str) -> str:
    """The name of the objects of an experiment that are given none."""
    plain = re.sub(r"[^a-z0-9]+", "-", experiment.lower()).strip("-")
    return f"bequeath-{plain}"[:48].rstrip("-")


def namespace_of(config: ExperimentConfig) -> str:
    """The namespace of an experiment's trials, which is the head's if it gets none."""
    spaces = (x.namespace for x in config.services if isinstance(x, KubernetesService))
    return next(filter(None, spaces), NAMESPACE)


def is_name(text: str) -> bool:
    """Whether all objects can have this name."""
    return _NAME.fullmatch(text) is not None


def problems_of(plan: HeadPlan) -> Iterator[FileProblem]:
    """Yield what a head could not work with in a pod, as far as the file tells."""
    values = plan.source.value
    if not plan.sections:
        text = "names no service with 'platform: kubernetes', whose trials would run in the cluster"
        yield FileProblem(("trainingService",), text, "docs/kubernetes.md has one")
        return
    several = isinstance(plan.config.training_service, tuple)
    for index, section in enumerate(plan.config.services):
        if isinstance(section, KubernetesService):
            at: JsonPath = ("trainingService", index) if several else ("trainingService",)
            yield from _of_section(plan, section, at)
    yield from _of_channel(plan)
    yield from _of_folders(plan, values)
    places = [PurePosixPath(each.at) for each in plan.volumes]
    for path, text in _texts(values, ()):
        file = PurePosixPath(text.removeprefix(FILE).partition("#")[0])
        if text.startswith(FILE) and not any(file.is_relative_to(each) for each in places):
            hint = "write 'env:NAME': the head's pod has variables from a Secret"
            yield FileProblem(path, f"refers to {file}, which no volume of the pod has", hint)
    for name, text in plan.files.items():
        if not _KEY.fullmatch(name):
            hint = "rename it: letters, digits, '-', '_' and '.'"
            yield FileProblem(("searchSpaceFile",), "has a name that no ConfigMap can have", hint)
        if len(text.encode()) > MOST_BYTES:
            key: JsonPath = () if name == plan.file_name else ("searchSpaceFile",)
            yield FileProblem(key, f"is larger than {MOST_BYTES:,} bytes", "a ConfigMap is not")


def _of_section(plan: HeadPlan, section: KubernetesService, at: JsonPath) -> Iterator[FileProblem]:
    for key, value in (("kubeconfig", section.kubeconfig), ("context", section.context)):
        if value is not None:
            text = "is of this machine: in the cluster the head has the account of its pod"
            yield FileProblem((*at, key), text, "leave it out")
    port = plan.config.channel.port or 7070
    mend = f"write 'headAddress: {plan.name}.{plan.namespace}:{port}', the name of the Service"
    address = section.head_address
    if address is None:
        yield FileProblem((*at, "headAddress"), "is missing: agents look for the head there", mend)
        return
    host, _, given = address.rpartition(":") if has_port(address) else (address, "", "")
    if is_loopback(host) or (_is_service(host, plan) and host.partition(".")[0] != plan.name):
        text = f"is {address!r}, which is not the Service {plan.name!r} of the head"
        yield FileProblem((*at, "headAddress"), text, mend)
    elif _is_service(host, plan) and given and int(given) != plan.config.channel.port:
        text = f"names another port than the one on which the head listens, {port}"
        yield FileProblem((*at, "headAddress"), text, mend)


def _is_service(host: str, plan: HeadPlan) -> bool:
    """Whether a host seems to be the name of a Service, and no address or name from outside."""
    _, dot, rest = host.partition(".")
    if not dot:
        return ":" not in host
    return rest == plan.namespace or f"{rest}.".startswith(f"{plan.namespace}.svc.")


def _of_channel(plan: HeadPlan) -> Iterator[FileProblem]:
    channel = plan.config.channel
    if channel.transport != "tcp" or not is_any(channel.host) or not channel.port:
        text = "must listen on all addresses of the pod, and on a port that the Service knows"
        mend = "{transport: tcp, host: 0.0.0.0, port: 7070, beyondThisMachine: true}"
        yield FileProblem(("channel",), text, f"write 'channel: {mend}'")


def _of_folders(plan: HeadPlan, values: Any) -> Iterator[FileProblem]:
    code = "trialCodeDirectory"
    if not _is_absolute(_at(values, code)):
        text = "must be given as the path that the image, or a volume, has"
        yield FileProblem((code,), text, f"write '{code}: /app', where the image has the code")
    for key in ("tuner", "assessor"):
        section = _at(values, key)
        for name in ("file", "codeDirectory"):
            value = _at(section, name)
            if value is not None and not _is_absolute(value):
                text = "is a path of this machine"
                yield FileProblem((key, name), text, "name the path that the image has")
        alone = _at(section, "file") is None and _at(section, "codeDirectory") is None
        if _at(section, "className") is not None and alone:
            text = "is looked for beside the experiment file, which is alone in the pod"
            hint = "write 'codeDirectory', as the image has it"
            yield FileProblem((key, "className"), text, hint)
    if "experiment_working_directory" in plan.config.model_fields_set:
        text = f"is not the volume of the experiments, which the pod has at {STATE_FOLDER}"
        yield FileProblem(("experimentWorkingDirectory",), text, "leave it out")
    space = _at(values, "searchSpaceFile")
    if space is not None and not _is_absolute(space) and space not in plan.files:
        text = "must lie beside the experiment file, with which it is brought to the pod"
        yield FileProblem(("searchSpaceFile",), text, "move it there, or write 'searchSpace'")
    root = plan.config.weights_folder
    if root is None and plan.config.weights_root is None:
        text = "is missing: pods of trials do not see the volume of the head"
        yield FileProblem(("weightsRoot",), text, "name a folder of a volume of 'volumes'")
    elif root is not None and not any(root.is_relative_to(each.at) for each in plan.volumes):
        text = f"is {str(root)!r}, which lies on no volume of the pods: it would go with the pod"
        hint = "name a folder below the 'at' of one of 'volumes'; scratch is none"
        yield FileProblem(("weightsRoot",), text, hint)


def objects_of(plan: HeadPlan) -> Iterator[dict[str, Any]]:
    """Yield the objects, in an order in which they can be created."""
    about = _about(plan)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}
    yield account
    for space in dict.fromkeys(each.namespace or plan.namespace for each in plan.sections):
        yield from role_of(space, f"{plan.namespace}:{plan.name}", plan.kinds_in(space), plan.name)
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": dict(plan.files)}
    claim: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": STATE_SIZE}},
    }
    if plan.storage_class is not None:
        claim["storageClassName"] = plan.storage_class
    yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": claim}
    port = plan.config.channel.port
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": about,
        "spec": {
            "selector": {_INSTANCE: plan.name},
            "ports": [{"name": "agents", "port": port, "targetPort": port}],
        },
    }
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": about,
        "spec": {
            "replicas": 1,
            # Never two heads at once; and a volume that one node may have cannot be had by two.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {_INSTANCE: plan.name}},
            "template": {"metadata": {"labels": _labels(plan)}, "spec": _pod(plan)},
        },
    }


def _labels(plan: HeadPlan) -> dict[str, str]:
    return {"app.kubernetes.io/name": "bequeath", _INSTANCE: plan.name}


def _about(plan: HeadPlan) -> dict[str, Any]:
    return {"name": plan.name, "namespace": plan.namespace, "labels": _labels(plan)}


def _pod(plan: HeadPlan) -> dict[str, Any]:
    section = plan.sections[0]
    volumes: list[dict[str, Any]] = [
        {"name": "state", "persistentVolumeClaim": {"claimName": plan.name}},
        {"name": "file", "configMap": {"name": plan.name}},
        *({"name": name, **each.source} for name, each in _named(plan)),
    ]
    pod: dict[str, Any] = {
        **{key: section.pod[key] for key in _AS_TRIALS if key in section.pod},
        "serviceAccountName": plan.name,
        "enableServiceLinks": False,
        # The first process is the cluster's own then, which takes in what others leave.
        "shareProcessNamespace": True,
        "containers": [_container(plan)],
        "volumes": volumes,
    }
    if section.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in section.image_pull_secrets]
    return pod


def _container(plan: HeadPlan) -> dict[str, Any]:
    section = plan.sections[0]
    container: dict[str, Any] = {
        "name": "head",
        "image": plan.image or section.image,
        "command": [section.python, "-P", "-m", "dispatcher.cli", "lead", "--stay"],
        "args": [f"{FILE_FOLDER}/{plan.file_name}"],
        "env": [{"name": "BEQUEATH_HOME", "value": STATE_FOLDER}, *_secret_variables(plan)],
        "resources": {"requests": dict(REQUESTS)},
        "volumeMounts": [
            {"name": "state", "mountPath": STATE_FOLDER},
            {"name": "file", "mountPath": FILE_FOLDER, "readOnly": True},
            *({"name": name, **each.mount} for name, each in _named(plan)),
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if section.image_pull_policy is not None:
        container["imagePullPolicy"] = section.image_pull_policy
    if "securityContext" in section.container:
        container["securityContext"] = section.container["securityContext"]
    return container


def _secret_variables(plan: HeadPlan) -> list[dict[str, Any]]:
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": plan.secret, "key": name}}}
        for name in plan.variables
    ]


def _named(plan: HeadPlan) -> list[tuple[str, VolumeConfig]]:
    return [(f"volume-{index}", each) for index, each in enumerate(plan.volumes)]


def _texts(value: Any, at: JsonPath) -> Iterator[tuple[JsonPath, str]]:
    """Yield the texts of a file that may be references, with their paths."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if fold_word(str(key)) not in _NO_REFERENCES_BELOW:
                yield from _texts(each, (*at, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _texts(each, (*at, index))
    elif isinstance(value, str) and value.startswith((ENV, FILE)):
        yield at, value


def written(values: Any, path: JsonPath) -> JsonPath:
    """A path as the file spells its keys, as far as the file has them."""
    found: list[str | int] = []
    for part in path:
        if isinstance(values, list) and isinstance(part, int) and part < len(values):
            found.append(part)
            values = values[part]
            continue
        key = _spelling(values, str(part))
        if key is None:
            break
        found.append(key)
        values = values[key]
    return tuple(found)


def _spelling(values: Any, key: str) -> str | None:
    if not isinstance(values, Mapping):
        return None
    return next((str(each) for each in values if fold_word(str(each)) == fold_word(key)), None)


def _at(values: Any, key: str) -> Any:
    spelling = _spelling(values, key)
    return None if spelling is None else values[spelling]


def _is_absolute(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("/")
