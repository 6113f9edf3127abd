"""The objects of one allocation: a Job, or one of another kind, and the Secret that it owns. Pure.

The Job is made first: what it owns goes with it, so that nothing is left wherever a head dies. Its
pods wait for the Secret.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from hashlib import blake2s
from typing import Any

from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.kubernetes.api.documents import label_of, name_of
from dispatcher.platforms.kubernetes.api.server import Document
from dispatcher.platforms.kubernetes.kind import AllocationKind
from dispatcher.platforms.kubernetes.section import KubernetesService
from trial_runtime.agent.config import encode_config
from trial_runtime.agent.nodes.meeting import ADDRESS_VARIABLE

#: Labels and annotations of ours. The service's label selects what a head looks at. The name of the
#: allocation is a label where its object has another one.
SERVICE, WORKER, EXPERIMENT = "bequeath/service", "bequeath/worker", "bequeath/experiment"
ALLOCATION = "bequeath/allocation"
TICKET = "bequeath/ticket"
MANAGED_BY = "app.kubernetes.io/managed-by"
QUEUE = "kueue.x-k8s.io/queue-name"

#: Where it finds its configuration, and the key of the Secret that holds it.
CONFIG_FOLDER, CONFIG = "/run/bequeath", "config"

#: Where it finds our archives, and the program that begins it, if they are brought.
ARCHIVES_FOLDER = "/run/bequeath-archives"

#: For what the agent does after its trials have ended: hand in, and leave (seconds). Nodes give a
#: pod 30 s unless it says otherwise.
LEAVE_S, LEAST_GRACE_S = 15.0, 30


def labels_of(kind: AllocationKind, order: AllocationOrder, service: str) -> dict[str, str]:
    """The labels of all objects of an allocation.

    Args:
        kind: of its object.
        order: of the allocation.
        service: the beginning of the names of all allocations of its service.
    """
    config = order.config
    labels = {MANAGED_BY: "bequeath", SERVICE: service}
    given = {EXPERIMENT: config.experiment, WORKER: config.worker}
    if kind.object_name(order.name) != order.name:
        given[ALLOCATION] = order.name
    return labels | {key: value for key, value in given.items() if _is_label(value)}


def allocation_in(kind: AllocationKind, document: Document, *, of_pod: bool = False) -> str:
    """The name of the allocation that an object, or one of its pods, belongs to; empty: to none.

    Args:
        kind: of the object.
        document: the object, or the pod.
        of_pod: which of them.
    """
    named = label_of(document, kind.pod_label) if of_pod else name_of(document)
    return label_of(document, ALLOCATION) or named


def selector_of(experiment: str) -> str:
    """A selector of all objects of an experiment, and perhaps of others: not each id is a label."""
    ours = f"{MANAGED_BY}=bequeath"
    return f"{ours},{EXPERIMENT}={experiment}" if _is_label(experiment) else ours


def ticket_of(order: AllocationOrder) -> str:
    """A digest of its ticket, by which an object is known as that of an order. The ticket itself is
    a secret."""
    return blake2s(order.config.ticket.encode(), digest_size=16).hexdigest()


def object_of(
    kind: AllocationKind,
    order: AllocationOrder,
    section: KubernetesService,
    service: str,
    brought: Sequence[Document] = (),
) -> dict[str, Any]:
    """The object of an order.

    Args:
        kind: of it.
        order: with the configuration and the environment as they are to be there.
        section: the service's part of the file.
        service: the beginning of the names of all its allocations.
        brought: sources of the volume with our archives.
    """
    labels = labels_of(kind, order, service)
    pod = _pod(kind, order, section, brought)
    template = {"metadata": {"labels": dict(labels)}, "spec": pod}
    if section.queue is not None:
        labels[QUEUE] = section.queue
    return {
        "apiVersion": kind.resource.version,
        "kind": kind.word,
        "metadata": {
            "name": kind.object_name(order.name),
            "labels": labels,
            "annotations": {TICKET: ticket_of(order)},
        },
        "spec": kind.spec_of(order, section, template),
    }


def secret_of(
    kind: AllocationKind, order: AllocationOrder, service: str, owner: Document
) -> dict[str, Any]:
    """The Secret of an order, which its object owns.

    Args:
        kind: of the object.
        order: as for :func:`object_of`.
        service: the beginning of the names of all its allocations.
        owner: the object as the server has it.
    """
    reference = {
        "apiVersion": kind.resource.version,
        "kind": kind.word,
        "name": kind.object_name(order.name),
        "uid": owner["metadata"]["uid"],
        "controller": True,  # and its end is not waited for, which needs a right more
    }
    values = {CONFIG: encode_config(order.config).decode()}
    values |= {_key(index): value for index, (_, value) in enumerate(_variables(order))}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": order.name,
            "labels": labels_of(kind, order, service),
            "ownerReferences": [reference],
        },
        "data": {key: b64encode(value.encode()).decode() for key, value in values.items()},
    }


def _variables(order: AllocationOrder) -> list[tuple[str, str]]:
    return sorted(order.environment.items())


def _environment(order: AllocationOrder) -> list[dict[str, Any]]:
    """The variables of the container. Pods of one trial reach one another by their addresses."""
    environment = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": order.name, "key": _key(index)}}}
        for index, (name, _) in enumerate(_variables(order))
    ]
    if order.nodes == 1 or ADDRESS_VARIABLE in order.environment:
        return environment
    address = {"name": ADDRESS_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return [*environment, address]


def _key(index: int) -> str:
    """The key of a variable in the Secret: their names may have letters that keys cannot have."""
    return f"variable-{index}"


def _pod(
    kind: AllocationKind,
    order: AllocationOrder,
    section: KubernetesService,
    brought: Sequence[Document],
) -> dict[str, Any]:
    volumes, mounts = _volumes(order, section)
    if brought:
        projected = {"sources": [*brought], "defaultMode": 0o444}
        volumes.append({"name": "bequeath-archives", "projected": projected})
        there = {"name": "bequeath-archives", "mountPath": ARCHIVES_FOLDER, "readOnly": True}
        mounts.append(there)
    container: dict[str, Any] = {
        **section.container,
        "name": kind.container,
        "image": section.image,
        "command": [section.python, *order.arguments, f"{CONFIG_FOLDER}/{CONFIG}"],
        "env": _environment(order),
        "resources": {"requests": section.requests, "limits": section.limits},
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if section.image_pull_policy is not None:
        container["imagePullPolicy"] = section.image_pull_policy
    grace_s = math.ceil(order.config.trial.stop_grace_s + LEAVE_S)
    pod: dict[str, Any] = {
        "enableServiceLinks": False,
        **section.pod,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": max(LEAST_GRACE_S, grace_s),
        "containers": [container],
        "volumes": volumes,
        "automountServiceAccountToken": section.service_account is not None,
    }
    if section.wall_time is not None:
        pod["activeDeadlineSeconds"] = math.ceil(section.wall_time)
    if section.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in section.image_pull_secrets]
    optional = {
        "serviceAccountName": section.service_account,
        "priorityClassName": section.priority_class,
        "nodeSelector": section.node_selector,
        "tolerations": [*section.tolerations],
    }
    return pod | {key: value for key, value in optional.items() if value}


def _volumes(
    order: AllocationOrder, section: KubernetesService
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The volumes of a pod, and where they are mounted."""
    # Readable for whatever user the image has: nobody else is in there.
    items = [{"key": CONFIG, "path": CONFIG}]
    secret = {"secretName": order.name, "items": items, "defaultMode": 0o444}
    volumes: list[dict[str, Any]] = [{"name": "bequeath", "secret": secret}]
    mounts: list[dict[str, Any]] = [
        {"name": "bequeath", "mountPath": CONFIG_FOLDER, "readOnly": True}
    ]
    if section.shared_memory is not None:
        memory = {"medium": "Memory", "sizeLimit": section.shared_memory}
        volumes.append({"name": "shared-memory", "emptyDir": memory})
        mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})  # noqa: S108 - of a pod
    for index, volume in enumerate(section.volumes):
        name = f"volume-{index}"
        volumes.append({"name": name, **volume.source})
        mounts.append({"name": name, **volume.mount})
    return volumes, mounts


def _is_label(value: str) -> bool:
    plain = value.replace("-", "a").replace("_", "a").replace(".", "a")
    ends = value[:1].isalnum() and value[-1:].isalnum()
    return 0 < len(value) <= 63 and plain.isascii() and plain.isalnum() and ends
