"""The fields by which a TrainJob gives pods what its runtime lacks: they are others in each version
of Kubeflow Trainer, so that the schema of the server is read. Pure.

The API is an alpha one. Version 2.2 has ``runtimePatches``, 2.1 ``podTemplateOverrides``; those of
2.0 (``podSpecOverrides``) give pods no labels, by which a head knows its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatcher.platforms.kubernetes.api.documents import mapping_in, mappings_in, text_of
from dispatcher.platforms.kubernetes.api.server import Document
from dispatcher.platforms.trainer.runtimes import NODE

PATCHES, OVERRIDES = "runtimePatches", "podTemplateOverrides"

#: Whose entry a patch is: each of those who patch a TrainJob has one.
MANAGER = "bequeath/head"

#: The proxies of a mesh, which namespaces of Kubeflow have by default, would outlive the agent.
_NO_PROXY = {"sidecar.istio.io/inject": "false"}

#: Fields from that of a TrainJob to a template of pods; ``[]`` stands for an entry of a list.
_WAYS: Mapping[str, tuple[str, ...]] = {
    PATCHES: (
        "[]", "trainingRuntimeSpec", "template", "spec", "replicatedJobs", "[]", "template", "spec",
        "template",
    ),
    OVERRIDES: ("[]",),
}  # fmt: skip

#: Fields of pods and of their container without which no agent can be there.
_NEEDED, _NEEDED_IN_CONTAINERS = frozenset({"volumes", "containers"}), frozenset({"volumeMounts"})
_NEEDED_ABOUT = frozenset({"labels", "annotations"})


@dataclass(frozen=True)
class PodFields:
    """Fields by which the TrainJobs of a server give pods what they need.

    Attributes:
        way: the field of a TrainJob that does: ``runtimePatches`` or ``podTemplateOverrides``.
        pod: fields of pods.
        container: fields of their containers.
        has_limit: whether a TrainJob has a limit of its time.
        job: the job of the runtime whose pods are meant.
    """

    way: str = PATCHES
    pod: frozenset[str] = frozenset({
        "affinity", "containers", "imagePullSecrets", "nodeSelector", "schedulingGates",
        "securityContext", "serviceAccountName", "terminationGracePeriodSeconds", "tolerations",
        "volumes",
    })  # fmt: skip
    container: frozenset[str] = frozenset({"securityContext", "volumeMounts"})
    has_limit: bool = True
    job: str = NODE

    def given(self, labels: Mapping[str, str], spec: Mapping[str, Any]) -> dict[str, Any]:
        """The field of a TrainJob that gives its pods these labels and these fields."""
        about = {"labels": dict(labels), "annotations": dict(_NO_PROXY)}
        template = {"metadata": about, "spec": dict(spec)}
        if self.way == OVERRIDES:
            return {OVERRIDES: [{"targetJobs": [{"name": self.job}], **template}]}
        jobs = [{"name": self.job, "template": {"spec": {"template": template}}}]
        patch = {"template": {"spec": {"replicatedJobs": jobs}}}
        return {PATCHES: [{"manager": MANAGER, "trainingRuntimeSpec": patch}]}


def job_in(spec: Document) -> str:
    """The job of the runtime that a TrainJob of ours gives its fields to; empty if it names none.

    Args:
        spec: of the TrainJob, whichever head has made it.
    """
    for override in mappings_in(spec, OVERRIDES):
        for target in mappings_in(override, "targetJobs"):
            return text_of(target.get("name"))
    for patch in mappings_in(spec, PATCHES):
        if patch.get("manager") == MANAGER:
            template = mapping_in(mapping_in(patch, "trainingRuntimeSpec"), "template")
            for job in mappings_in(mapping_in(template, "spec"), "replicatedJobs"):
                return text_of(job.get("name"))
    return ""


NEWEST = PodFields()
"""Those of version 2.3."""


def fields_in(schema: Document) -> PodFields | None:
    """Read what the TrainJobs of a server can give their pods; None: nothing that would do.

    Args:
        schema: of TrainJobs, as the server has it.
    """
    spec = _below(schema, "spec")
    for way, path in _WAYS.items():
        template = _below(spec, way, *path)
        pod = frozenset(_properties(_below(template, "spec")))
        container = frozenset(_properties(_below(template, "spec", "containers", "[]")))
        about = _properties(_below(template, "metadata"))
        if pod >= _NEEDED and container >= _NEEDED_IN_CONTAINERS and about.keys() >= _NEEDED_ABOUT:
            has_limit = "activeDeadlineSeconds" in _properties(spec)
            return PodFields(way, pod, container, has_limit)
    return None


def _properties(schema: Document) -> Mapping[str, Any]:
    return mapping_in(schema, "properties")


def _below(schema: Document, *path: str) -> Document:
    """The schema of a field of a field, and so on; empty if there is none."""
    for name in path:
        is_entry = name == "[]"
        schema = mapping_in(schema, "items") if is_entry else mapping_in(_properties(schema), name)
    return schema
