"""A cluster looked over before anything is ordered: whether it knows us, and has what the file
names. Nothing is changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from dispatcher.errors import BackendError
from dispatcher.findings import Finding, Severity
from dispatcher.http_services.client import HttpClient
from dispatcher.http_services.errors import NotAllowed, NotThere
from dispatcher.platforms.openpai.jobs import client_of
from dispatcher.platforms.openpai.section import OpenPaiSection

Document = Mapping[str, Any]

OK, NOTE, PROBLEM = Severity.OK, Severity.NOTE, Severity.PROBLEM


def inspect_cluster(section: OpenPaiSection) -> Iterator[Finding]:
    """Yield what is found of a section's cluster, as far as it can be asked. Raises
    ``BackendError``."""
    client = client_of(section)
    try:
        version = _fields(client, "/api/v2/info", "ask for its version").get("version")
        yield Finding("cluster", OK, f"OpenPAI {version} at {client.where}")
        if section.address.startswith("http:"):
            text = "the token and the keys of agents go there unencrypted"
            yield Finding("cluster", NOTE, text, "write https", (("address",),))
        mine = None
        try:
            mine = _fields(client, f"/api/v2/users/{section.user}", "ask who we are")
        except NotThere:
            text = f"the cluster knows no user {section.user!r}"
            yield Finding("login", PROBLEM, text, keys=(("user",),))
        except NotAllowed:
            pass  # application tokens are for jobs alone
        yield from _virtual_cluster(section, client, mine)
        yield from _storages(section, client)
    finally:
        client.close()


def _fields(client: HttpClient, path: str, asked: str) -> Document:
    return client.ask("GET", path, asked=asked).fields


def _virtual_cluster(
    section: OpenPaiSection, client: HttpClient, mine: Document | None
) -> Iterator[Finding]:
    name, keys = section.virtual_cluster, (("virtualCluster",),)
    known = _fields(client, "/api/v2/virtual-clusters", "list virtual clusters")
    allowed = list(known) if mine is None else mine.get("virtualCluster") or []
    if name not in known:
        hint = f"there are {', '.join(sorted(known)) or 'none'}"
        yield Finding("cluster", PROBLEM, f"there is no virtual cluster {name!r}", hint, keys)
        return
    if name not in allowed:
        text = f"{section.user!r} may not use the virtual cluster {name!r}"
        yield Finding("rights", PROBLEM, text, f"they may use {', '.join(allowed)}", keys)
        return
    total = known[name].get("resourcesTotal") or {}
    owned = (("cpu", "cpu", "cpus"), ("memoryMB", "memory", "memory"), ("gpu", "gpu", "gpus"))
    for asked, kind, key in owned:
        wanted = section.node_resources[asked]
        if total.get(kind, wanted) < wanted:
            text = f"{name!r} has {total[kind]} of {asked} in all, and a job asks for {wanted}"
            yield Finding("quota", PROBLEM, text, "it would wait for ever", ((key,),))


def _storages(section: OpenPaiSection, client: HttpClient) -> Iterator[Finding]:
    if not section.storages:
        return
    answer = _fields(client, "/api/v2/storages", "list storages")
    known = {str(each.get("name")): each for each in answer.get("storages") or ()}
    for number, storage in enumerate(section.storages):
        keys = (("storages", number, "name"),)
        if storage.name not in known:
            hint = f"{section.user!r} may use {', '.join(sorted(known)) or 'none'}"
            yield Finding("volumes", PROBLEM, f"there is no storage {storage.name!r}", hint, keys)
            continue
        detail: Document = {}
        with contextlib.suppress(BackendError):  # its administrators' alone
            asked = f"read the storage {storage.name!r}"
            detail = _fields(client, f"/api/v2/storages/{storage.name}", asked)
        text = f"jobs have the storage {storage.name!r} at {storage.place}"
        if storage.here is not None and detail.get("readOnly"):
            hint = "agents write what lies there"
            yield Finding("volumes", PROBLEM, f"{text}, read only", hint, keys)
        elif storage.here is not None and not known[storage.name].get("share", True):
            text += f", and of it the folder of {section.user!r} alone"
            yield Finding("volumes", NOTE, text, "is 'here' that folder?", keys)
        else:
            yield Finding("volumes", OK, text)
