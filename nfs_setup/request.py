"""Requests as plain data: options of the command line, or JSON that came over SSH."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

from nfs_setup.errors import RequestRefused
from nfs_setup.plain_values import made_of


@dataclass(frozen=True)
class ServerRequest:
    """Export ``path`` to ``clients``. ``owner``, ``group`` and ``mode`` of the folder: those
    of one that is there stay, unless they are given; ``maker`` (``uid:gid``) owns one that is
    made, if nobody else is named. ``shares_its_file_system``: it may be a folder among others."""

    path: str
    clients: tuple[str, ...]
    owner: str = ""
    group: str = ""
    mode: str = ""
    maker: str = ""
    read_only: bool = False
    root_squash: bool = True
    sync: bool = True
    sec: str = "sys"
    nfs3: bool = False
    shares_its_file_system: bool = False
    allow_wildcards: bool = False
    allow_everybody: bool = False
    open_firewall: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class ClientRequest:
    """Mount ``source`` (``server:/path``) at ``point``. ``last``: ``automount``, ``fstab``,
    ``no`` (until the next boot), or ``auto`` for what this machine has."""

    source: str
    point: str
    last: str = "auto"
    version: str = "4.2"
    sec: str = "sys"
    read_only: bool = False
    nconnect: int = 4
    actimeo: int = 0  # seconds; 0: the kernel's own times
    exec_allowed: bool = True
    atime: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class StatusRequest:
    """Show what this machine serves and mounts."""


@dataclass(frozen=True)
class UndoRequest:
    """Take back what was set up: for one folder or mount point, or (empty) all of it.
    ``missing_is_fine``: a target that was not set up has nothing to undo, and is no error."""

    target: str = ""
    keep_packages: bool = False
    while_clients_use_it: bool = False
    dry_run: bool = False
    missing_is_fine: bool = False


Request = Union[ServerRequest, ClientRequest, StatusRequest, UndoRequest]

VERBS: dict[str, type[Any]] = {
    "server": ServerRequest,
    "client": ClientRequest,
    "status": StatusRequest,
    "undo": UndoRequest,
}


def request_of(document: Any) -> Request:
    """Turn ``{"verb": "client", …}`` into the request.

    Raises:
        RequestRefused: for an unknown verb or key, or a value of the wrong type.
    """
    if not isinstance(document, Mapping):
        raise RequestRefused("is no JSON object", where="request")
    values = dict(document)
    verb = values.pop("verb", None)
    if not isinstance(verb, str) or verb not in VERBS:
        raise RequestRefused(f"its verb is not one of {', '.join(VERBS)}", where="request")
    made: Request = made_of(VERBS[verb], values, "request")
    return made
