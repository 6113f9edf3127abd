"""Clients that may mount a folder, and options: checked, as a line of exports(5)."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nfs_setup.errors import RequestRefused
from nfs_setup.paths import escaped, is_host_name

FOLDER = "/etc/exports.d"

_FLAVOURS = ("sys", "krb5", "krb5i", "krb5p")

_NETGROUP = re.compile(r"@[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
_WILDCARD = re.compile(r"[A-Za-z0-9_.*?-]{1,253}")

#: Exactly these mean everybody, however they are written.
_EVERYBODY = "everybody who can reach this machine"


@dataclass(frozen=True)
class Client:
    """One word of exports(5) that names who may mount, and what to know about it."""

    word: str
    network: str = ""  # for rules of firewalls; empty for names
    warning: str = ""

    @property
    def is_name(self) -> bool:
        """Whether it is the name of one host."""
        return not self.network and not set("@*?") & set(self.word)


def client(text: str, *, wildcards: bool = False, everybody: bool = False) -> Client:
    """Check a host name, an address, a network (``10.0.0.0/24``) or a netgroup (``@name``).

    Args:
        text: what was asked for.
        wildcards: allow names such as ``*.example.org``.
        everybody: allow ``*`` and networks that hold all addresses.

    Raises:
        RequestRefused: for anything else.
    """
    where = f"client {text!r}"
    if text in ("*", "0.0.0.0/0", "::/0", "0.0.0.0/0.0.0.0"):
        return _everybody(text, where, everybody)
    if _NETGROUP.fullmatch(text):
        return Client(text)
    if re.fullmatch(r"[0-9.]+(/[0-9.]*)?", text) or ":" in text:
        return _network(text, where, everybody)
    if "*" in text or "?" in text:
        if not _WILDCARD.fullmatch(text) or not text.strip("*?."):
            raise RequestRefused("is no pattern of host names", where=where)
        if not wildcards:
            raise RequestRefused(
                "is a pattern; anybody who controls the reverse DNS of an address can match it",
                where=where,
                hint="name the hosts or their network, or add --allow-wildcards",
            )
        return Client(text, warning=f"{text} trusts anybody who controls reverse DNS")
    if not is_host_name(text):
        raise RequestRefused(
            "is neither a host name nor an address nor a network",
            where=where,
            hint="write for example trainer1, 10.0.0.7 or 10.0.0.0/24",
        )
    return Client(text)


def _everybody(text: str, where: str, allowed: bool) -> Client:
    if not allowed:
        raise RequestRefused(
            f"means {_EVERYBODY}",
            where=where,
            hint="name the hosts or their network (10.0.0.0/24), or add --allow-everybody",
        )
    return Client(text, warning=f"{text} lets in {_EVERYBODY}; a firewall is all that is left")


def _network(text: str, where: str, everybody: bool) -> Client:
    if "%" in text:
        raise RequestRefused("has a zone, which exports cannot hold", where=where)
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        hint = ""
        try:
            hint = f"write {ipaddress.ip_network(text, strict=False)}"
        except ValueError:
            pass
        raise RequestRefused(f"is no network: {error}", where=where, hint=hint) from None
    if network.prefixlen == 0:
        return _everybody(text, where, everybody)
    single = network.num_addresses == 1
    word = str(network.network_address) if single else str(network)
    warning = ""
    if network.is_global:
        warning = f"{word} is reached over the open internet: NFS with sec=sys believes anybody"
    return Client(word, str(network), warning)


@dataclass(frozen=True)
class Options:
    """Options of an export. The defaults are the safe ones."""

    read_only: bool = False
    root_squash: bool = True
    sync: bool = True
    sec: tuple[str, ...] = ("sys",)
    fsid: str = ""  # for file systems that have no lasting name of their own

    def text(self) -> str:
        """Return the options for exports(5), all explicit: defaults have changed before."""
        parts = [
            "ro" if self.read_only else "rw",
            "sync" if self.sync else "async",
            "root_squash" if self.root_squash else "no_root_squash",
            # A check of each request that breaks on renames. Without it a client that forges
            # handles reaches the whole file system: so a folder has to be one of its own, or
            # somebody says that it need not be (server.py).
            "no_subtree_check",
            f"sec={':'.join(self.sec)}",
        ]
        parts += [f"fsid={self.fsid}"] if self.fsid else []
        return ",".join(parts)


def flavours(text: str) -> tuple[str, ...]:
    """Split ``krb5p:krb5i`` into its parts, in the order of preference.

    Raises:
        RequestRefused: for a flavour that nfs(5) does not have.
    """
    parts = tuple(text.split(":"))
    for flavour in parts:
        if flavour not in _FLAVOURS:
            hint = f"it is one of {', '.join(_FLAVOURS)}, several separated by ':'"
            raise RequestRefused("is no security flavour", where=f"sec {flavour!r}", hint=hint)
    return parts


def file_of(path: str) -> str:
    """Return our own file for a share. exportfs(8) reads names that end in ``.exports`` only."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", path).strip("-")[:60]
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{FOLDER}/bequeath-{plain}-{digest}.exports"


def text_of(path: str, clients: Sequence[Client], options: Options) -> str:
    """Return the content of our file: one line, whatever the path is called.

    Args:
        path: the folder, absolute.
        clients: machines and networks that may mount it.
        options: the same for all of them.
    """
    parts = " ".join(f"{c.word}({options.text()})" for c in clients)
    head = "# Written by 'bequeath nfs server'; 'bequeath nfs undo' removes it.\n"
    return f"{head}{escaped(path)} {parts}\n"
