"""A cluster looked over before anything is ordered: whether it answers, what we may do there, and
whether it would take our Job, or what else allocations are. Nothing is changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dispatcher.errors import BackendError, PassingBackendError
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.clusters.inspection import inspect_ways
from dispatcher.platforms.finding_places import keys_in
from dispatcher.platforms.kubernetes.api.errors import NotAllowed, NotThere
from dispatcher.platforms.kubernetes.api.kubeconfig import find_access
from dispatcher.platforms.kubernetes.api.server import (
    CLAIMS,
    NODES,
    PODS,
    ApiServer,
    Document,
)
from dispatcher.platforms.kubernetes.bodies import object_of
from dispatcher.platforms.kubernetes.rights import missing_rights
from dispatcher.platforms.kubernetes.section import KubernetesService, amount
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint
from tuners.plain_json import JsonPath

#: The oldest version that this was tried with.
OLDEST = (1, 20)

#: Words of a server that refuses an object, and the keys that they are about.
_KEYS = (
    ("namespace", "namespace"),
    ("service account", "serviceAccount"),
    ("serviceaccount", "serviceAccount"),
    ("priorityclass", "priorityClass"),
    ("nodeselector", "nodeSelector"),
    ("tolerations", "tolerations"),
    ("volume", "volumes"),
    ("limits", "limits"),
    ("requests", "requests"),
    ("quota", "requests"),
    ("quota", "limits"),
    ("image", "image"),
)

#: The name of the object that is tried. None of that name is ever kept.
TRIED = "bequeath-dry-run"


def inspect_cluster(section: KubernetesService) -> Iterator[Finding]:
    """Yield what is found of a section's cluster, as far as it can be asked.

    Args:
        section: of the service.

    Raises:
        BackendError: it cannot be reached, or does not know us.
    """
    access = find_access(section.kubeconfig, section.context or "")
    server = ApiServer(access, section.namespace or "")
    try:
        yield _version(server)
        served = list(_served(server, section))
        yield from served
        if any(each.severity is Severity.PROBLEM for each in served):
            return
        for look in (_rights, _takes, _nodes, _claims, _ways):
            yield from look(server, section)
    finally:
        server.close()


def _version(server: ApiServer) -> Finding:
    version = server.version()
    text = f"Kubernetes {version.text} at {server.where}, namespace {server.namespace!r}"
    if (version.major, version.minor) < OLDEST:
        hint = f"nobody has tried one before {OLDEST[0]}.{OLDEST[1]}"
        return Finding("cluster", Severity.NOTE, text, hint)
    return Finding("cluster", Severity.OK, text)


def _served(server: ApiServer, section: KubernetesService) -> Iterator[Finding]:
    """Say whether the cluster has objects of a kind that is no part of Kubernetes."""
    kind = section.allocation_kind
    if not kind.controller:
        return
    resource = kind.resource
    try:
        if resource.plural in server.plurals(resource.api):
            yield Finding("cluster", Severity.OK, f"it has {kind.word}s of {resource.version}")
            return
    except NotAllowed:
        return  # what it takes says more
    except NotThere:
        pass
    text = f"it has no {kind.word}s of {resource.version}"
    with contextlib.suppress(BackendError):
        others = ", ".join(server.versions(resource.group))
        text += f"; of that group there is {others}" if others else ""
    hint = f"its administrators install {kind.controller}"
    yield Finding("cluster", Severity.PROBLEM, text, hint, (("platform",),))


def _rights(server: ApiServer, section: KubernetesService) -> Iterator[Finding]:
    missing = missing_rights(server, section.allocation_kind)
    needed = [f"{each.verb} {each.kind.plural}" for each in missing if each.needed]
    more = [f"{each.verb} {each.kind.plural}" for each in missing if not each.needed]
    hint = "`bequeath kubernetes rights USER` prints the Role for its administrators"
    if needed:
        yield Finding("rights", Severity.PROBLEM, f"you may not {', '.join(needed)}", hint)
    if more:
        text = f"you may not {', '.join(more)}: reasons may be missing"
        yield Finding("rights", Severity.NOTE, text, hint)
    if not missing:
        yield Finding("rights", Severity.OK, "all that is needed is allowed")


def _takes(server: ApiServer, section: KubernetesService) -> Iterator[Finding]:
    """Have an object of this section checked by all that would have a say, and kept by nobody."""
    kind = section.allocation_kind
    words = (*kind.key_words, *_KEYS)
    try:
        body = object_of(kind.served_by(server, section), _order(), section, TRIED)
        answer = server.create(kind.resource, body, dry_run=True)
    except PassingBackendError as error:  # a quota without room: it would wait
        keys = keys_in(error.message, words)
        yield Finding("job", Severity.NOTE, error.message, error.hint, keys)
    except BackendError as error:
        keys = keys_in(error.message, words)
        yield Finding("job", Severity.PROBLEM, error.message, error.hint, keys)
    else:
        for warning in answer.warnings:
            yield Finding("job", Severity.NOTE, f"the server warns: {warning}")
        if not answer.warnings:
            one = f"{'an' if kind.word[0] in 'AEIOU' else 'a'} {kind.word}"
            text = f"it takes {one} with the image {section.image!r}"
            yield Finding("job", Severity.OK, text)


def _nodes(server: ApiServer, section: KubernetesService) -> Iterator[Finding]:
    """Say whether a node has what a pod asks for: a server takes what none can run. Nothing
    is said where nodes may not be listed, which is a right beyond the namespace."""
    asked = {**section.limits, **section.requests}
    labels = ",".join(f"{key}={value}" for key, value in section.node_selector.items())
    if not asked and not labels:
        return
    try:
        having = [_allocatable(node) for node in server.list(NODES, labels).objects]
    except BackendError:
        return
    wanted = [f"{quantity} of {name!r}" for name, quantity in asked.items()]
    wanted += [f"the labels {labels}"] if labels else []
    text = ", ".join(wanted)

    def short_of(node: dict[str, float]) -> list[str]:
        return [name for name, each in asked.items() if node.get(name, 0.0) < amount(each)]

    if any(not short_of(node) for node in having):
        yield Finding("nodes", Severity.OK, f"a node has {text}")
        return
    nowhere = [name for name in asked if all(name in short_of(node) for node in having)]
    keys: tuple[JsonPath, ...] = tuple(
        ("limits" if name in section.limits else "requests", name) for name in nowhere or asked
    )
    if not having and labels:
        keys = (("nodeSelector",),)
    text = f"no node has {text}: a pod waits until one comes"
    yield Finding("nodes", Severity.NOTE, text, "an autoscaler may bring one", keys)


def _allocatable(node: Document) -> dict[str, float]:
    """Return what pods may have of a node, by name; what is no quantity is left out."""
    found = {}
    given = (node.get("status") or {}).get("allocatable") or {}
    for name, quantity in given.items():
        with contextlib.suppress(ValueError):
            found[str(name)] = amount(str(quantity))
    return found


def _order() -> AllocationOrder:
    """An order of nothing that could run."""
    config = AgentConfig(
        worker="dry-run",
        slots=1,
        head=Endpoint("tcp://127.0.0.1:1", "dry-run"),
        epoch=1,
        run_folder="",
        experiment_folder="/",
        trial=TrialSpec("/"),
        weights_root="/",
    )
    return AllocationOrder(TRIED, config, ("-m", "trial_runtime.agent"), {})


def _ways(server: ApiServer, section: KubernetesService) -> Iterator[Finding]:
    """Nodes are known by the pods that run in the namespace: few may list nodes."""
    hosts: list[str] = []
    with contextlib.suppress(BackendError):  # findings about rights say so
        for pod in server.list(PODS, "").objects:
            hosts.append(pod.get("status", {}).get("hostIP") or "")
    yield from inspect_ways(section, filter(None, hosts))


def _claims(server: ApiServer, section: KubernetesService) -> Iterator[Finding]:
    claims = [each.claim for each in section.volumes]
    for name in dict.fromkeys(each for each in claims if each is not None):
        keys = (("volumes", claims.index(name), "claim"),)
        try:
            claim = server.get(CLAIMS, name)
        except NotAllowed:
            continue  # a note says that already
        except NotThere:
            text = f"there is no PersistentVolumeClaim {name!r} in {server.namespace!r}"
            hint = "pods that name it wait for ever"
            yield Finding("volumes", Severity.PROBLEM, text, hint, keys)
            continue
        modes = claim.get("spec", {}).get("accessModes", [])
        phase = claim.get("status", {}).get("phase", "of no phase")
        text = f"the claim {name!r} is {phase}, {', '.join(map(str, modes))}"
        alone = section.allocations.max > 1 and "ReadWriteMany" not in modes
        hint = "several pods may have it on one node only" if alone else ""
        yield Finding("volumes", Severity.NOTE if alone else Severity.OK, text, hint, keys)
