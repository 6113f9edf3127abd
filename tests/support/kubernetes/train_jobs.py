"""Kubeflow Trainer's kinds of objects by their published definitions, with what these say in CEL,
restated. Those of versions before are made of the newest one, by what the source of these versions
says: they differ in how pods get what their runtime lacks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.kubernetes.crds import CONTRACTS, Crd
from tests.support.kubernetes.operators import Object

SYSTEM = "kubeflow-trainer-v2"
GROUP = "trainer.kubeflow.org"
STEP = f"{GROUP}/trainjob-ancestor-step"

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_MANAGERS = (f"{GROUP}/trainjob-controller", "kueue.x-k8s.io/multikueue")

#: Fields of a TrainJob, and of the pods in one of its patches, that stay as they were.
_FIXED = ("runtimeRef", "initializer", "trainer", "managedBy", "activeDeadlineSeconds")
_FIXED_IN_PODS = (
    "containers", "imagePullSecrets", "initContainers", "securityContext", "serviceAccountName",
    "terminationGracePeriodSeconds", "volumes",
)  # fmt: skip


def _read(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((CONTRACTS / SYSTEM / f"{name}.json").read_text())
    return read


def pods_in(spec: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Object]]:
    """The pods that a TrainJob patches: whose patch of which job, and the template."""
    for patch in spec.get("runtimePatches", []):
        template = patch.get("trainingRuntimeSpec", {}).get("template", {})
        for job in template.get("spec", {}).get("replicatedJobs", []):
            pod = job.get("template", {}).get("spec", {}).get("template", {})
            yield (patch["manager"], job["name"]), pod
    for index, override in enumerate(spec.get("podTemplateOverrides", [])):
        for target in override["targetJobs"]:
            yield (str(index), target["name"]), override


def _stays(before: Object | None, after: Object) -> list[str]:
    """The rules of the form ``self == oldSelf``: they are about what was there and is there."""
    if before is None:
        return []
    old, new = before["spec"], after["spec"]
    pairs = [(f"spec.{key}", old.get(key), new.get(key)) for key in _FIXED]
    there = dict(pods_in(old))
    for at, pod in pods_in(new):
        was, now = there.get(at, {}).get("spec", {}), pod.get("spec", {})
        pairs += [(f"spec.runtimePatches {at} {k}", was.get(k), now.get(k)) for k in _FIXED_IN_PODS]
    return [
        f"{path}: field is immutable"
        for path, was, now in pairs
        if was is not None and now is not None and was != now
    ]


def _fits(before: Object | None, after: Object) -> list[str]:
    """The other rules."""
    found = []
    name = after.get("metadata", {}).get("name", "x")
    if not _NAME.fullmatch(name):
        found.append("metadata.name must match RFC 1035 DNS label format")
    if len(name) > 63:
        found.append("metadata.name must be no more than 63 characters")
    manager = after.get("spec", {}).get("managedBy", _MANAGERS[0])
    if manager not in _MANAGERS:
        found.append(f"spec.managedBy: must be one of {', '.join(_MANAGERS)}")
    reported = after.get("status", {}).get("trainerStatus")
    if reported is not None and "lastUpdatedTime" not in reported:
        found.append("lastUpdatedTime is required when trainerStatus is present")
    return found


def _of_version(change: Callable[[dict[str, Any]], None]) -> Crd:
    document = _read("trainjobs")
    (version,) = document["spec"]["versions"]
    change(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
    return Crd(document, rules=[_stays, _fits])


def _before_2_2(spec: dict[str, Any]) -> Object:
    """Take away what came with 2.2; the template of pods that patches have."""
    schema = spec.pop("runtimePatches")
    del spec["activeDeadlineSeconds"]
    path = ["trainingRuntimeSpec", "template", "spec", "replicatedJobs", "template", "spec"]
    for key in (None, *path, "template"):
        schema = schema["properties"][key] if key else schema
        schema = schema.get("items", schema)
    pod = schema["properties"]["spec"]["properties"]
    for field in ("securityContext", "terminationGracePeriodSeconds"):
        del pod[field]
    for field in ("containers", "initContainers"):
        del pod[field]["items"]["properties"]["securityContext"]
    template: Object = schema
    return template


def train_jobs_of_2_1() -> Crd:
    """Those with ``podTemplateOverrides``."""

    def change(spec: dict[str, Any]) -> None:
        template = _before_2_2(spec)
        name = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
        template["properties"]["targetJobs"] = {"type": "array", "items": name}
        template["required"] = ["targetJobs"]
        spec["podTemplateOverrides"] = {"type": "array", "items": template}

    return _of_version(change)


def train_jobs_of_2_0() -> Crd:
    """Those with ``podSpecOverrides``, which give pods no labels."""

    def change(spec: dict[str, Any]) -> None:
        template = _before_2_2(spec)
        spec["podSpecOverrides"] = {"type": "array", "items": template["properties"]["spec"]}

    return _of_version(change)


def train_jobs() -> Crd:
    """Those of 2.3."""
    return _of_version(lambda spec: None)


def runtimes(kind: str = "ClusterTrainingRuntime") -> Crd:
    """Runtimes: both kinds have one schema, and are published twice."""
    document = _read("trainingruntimes")
    if kind == "ClusterTrainingRuntime":
        names = {
            "kind": kind, "listKind": f"{kind}List", "plural": f"{kind.lower()}s",
            "singular": kind.lower(),
        }  # fmt: skip
        document["spec"] |= {"names": names, "scope": "Cluster"}
        document["metadata"]["name"] = f"{kind.lower()}s.{GROUP}"
    return Crd(document)


def runtime(
    name: str = "of-agents",
    *,
    kind: str = "ClusterTrainingRuntime",
    policy: Mapping[str, Any] | None = None,
    pod: Mapping[str, Any] | None = None,
    backoff_limit: int | None = 0,
    step: str = "trainer",
    job: str = "node",
    container: str = "node",
    **job_set: Any,
) -> Object:
    """A runtime, by which nothing is started again unless it is asked for.

    Args:
        name: of it.
        kind: of it.
        policy: ``mlPolicy``.
        pod: further fields of its pods; they are started once if it says nothing.
        backoff_limit: of its Job; None: not given.
        step: which part of a TrainJob the job is.
        job: the name of the job.
        container: the name of its container.
        job_set: further fields of the JobSet.
    """
    own = {"name": container, "image": "pytorch", "args": ["of", "the", "runtime"]}
    spec = {"containers": [own], **({"restartPolicy": "Never"} if pod is None else pod)}
    template: Object = {"spec": {"template": {"spec": spec}}, "metadata": {"labels": {STEP: step}}}
    if backoff_limit is not None:
        template["spec"]["backoffLimit"] = backoff_limit
    jobs = [{"name": job, "template": template}]
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}} if policy is None else dict(policy),
            "template": {"spec": {"replicatedJobs": jobs, **job_set}},
        },
    }


USUAL = runtime("torch-distributed", pod={}, backoff_limit=None)
"""The form of those that come with Kubeflow Trainer: all that fails is started again."""
