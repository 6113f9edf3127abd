"""Parts of a workspace judged before anything is ordered, by what it says of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dispatcher.findings import Finding, Severity
from dispatcher.http_services.azure import Document, Keys, SubResource
from dispatcher.platforms.azureml.section import OWN, REGISTRIES, AzureMlSection, DatastoreConfig

OK, NOTE, PROBLEM = Severity.OK, Severity.NOTE, Severity.PROBLEM


def environment_path(text: str) -> str:
    """The path of an environment ``NAME:VERSION`` below its workspace."""
    name, _, version = text.removeprefix(OWN).partition(":")
    return f"/environments/{name}/versions/{version}"


def parts_of(section: AzureMlSection) -> Iterator[SubResource]:
    """Yield the parts of its workspace that a section names."""
    judge = partial(_of_compute, section)
    yield SubResource(f"/computes/{section.compute}", judge, (("compute",),))
    for number, store in enumerate(section.datastores):
        keys = (("datastores", number, "name"),)
        yield SubResource(f"/datastores/{store.name}", partial(_of_store, store), keys)
    if section.image.startswith(OWN) and not section.image.startswith(REGISTRIES):
        yield SubResource(environment_path(section.image), _of_environment, (("image",),))


def why_no_node(section: AzureMlSection, about: Document) -> str:
    """Why a compute has no node for a job, in a sentence; empty: nobody knows."""
    return next((each.text for each in _of_compute(section, about, ())), "")


def _of_compute(section: AzureMlSection, about: Document, keys: Keys) -> Iterator[Finding]:
    """Yield what keeps a compute from running jobs, then how many nodes it has."""
    own, state = about.get("properties") or {}, about.get("provisioningState", "Succeeded")
    most = (own.get("scaleSettings") or {}).get("maxNodeCount")
    for error in [each.get("error") or {} for each in own.get("errors") or ()][::-1]:
        text = f"{error.get('code')}: {error.get('message')}"
        yield Finding("quota", PROBLEM, text, "have its quota raised, or name another", keys)
    if most == 0:
        text = f"{section.compute!r} may have no node at all"
        yield Finding("quota", PROBLEM, text, "have its maximum of nodes raised", keys)
    if own.get("osType") == "Windows" or state not in ("Succeeded", "Updating"):
        text = f"{section.compute!r} runs Windows, or is {state}"
        yield Finding("compute", PROBLEM, text, "", keys)
    if most is not None:
        yield Finding("compute", OK, f"{own.get('currentNodeCount', 0)} of {most} nodes are there")
        if 0 < most < section.allocations.max:
            text = f"{section.compute!r} has {most} nodes at most: further jobs wait"
            yield Finding("compute", NOTE, text, "", (("allocations",), *keys))
    if own.get("vmPriority") == "LowPriority":
        yield Finding("compute", NOTE, "its nodes may be taken back at any time", "", keys)


def _of_store(store: DatastoreConfig, about: Document, keys: Keys) -> Iterator[Finding]:
    """Yield whether a datastore can be what its section says: blobs are not renamed at once."""
    kind = str(about.get("datastoreType"))
    if store.here is None or kind.lower() == "azurefile":
        text = f"jobs have the datastore {store.name!r} at {store.place}"
        yield Finding("volumes", OK, text)
        return
    text = f"{store.name!r} is {kind}, where no file is renamed at once: others see halves of it"
    hint = "write 'weightsRoot: az://…' for weights, and a file share for 'sharedFolder'"
    yield Finding("volumes", PROBLEM, text, hint, keys)


def _of_environment(about: Document, keys: Keys) -> Iterator[Finding]:
    """Yield that an environment has no image."""
    if about.get("provisioningState") == "Failed":
        yield Finding("image", PROBLEM, "its image could not be built", "see its log", keys)
