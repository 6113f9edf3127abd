"""Lines of exports(5): clients and options, checked and written; files, read as exportfs does.

Reading goes by the rules of nfs-utils' own parser (xio.c, exports.c). It shows whether somebody
else exports a folder already, and checks what we are about to write: it is read back before that.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nfs_setup.errors import RequestRefused
from nfs_setup.host import Files, Host
from nfs_setup.paths import escaped, is_host_name

FOLDER = "/etc/exports.d"

_FLAVOURS = ("sys", "krb5", "krb5i", "krb5p")

_OCTAL = frozenset(b"01234567")
_BLANK = frozenset(b" \t\n\r\v\f")

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


@dataclass(frozen=True)
class Export:
    """One folder for one client. All texts are bytes decoded as file names are."""

    path: str
    client: str
    options: str
    line: int


def read_exports(content: bytes) -> list[Export]:
    """Return all exports of one file."""
    found = []
    for number, words in _lines(content):
        if not words:
            continue
        path = words[0].decode("utf-8", "surrogateescape")
        for word in words[1:]:
            text = word.decode("utf-8", "surrogateescape")
            if text.startswith("-"):
                continue  # options for the clients that follow
            who, _, options = text.partition("(")
            found.append(Export(path, who or "*", options.rstrip(")"), number))
        if len(words) == 1:
            found.append(Export(path, "*", "", number))
    return found


def exporters(files: Files, path: str, but: str) -> list[str]:
    """Return ``file:line`` of each entry for a folder.

    Args:
        files: the machine's files.
        path: the folder, absolute.
        but: our own file, which is left out.
    """
    names = [f"{FOLDER}/{name}" for name in files.names(FOLDER) if name.endswith(".exports")]
    found = []
    for name in ("/etc/exports", *names):
        if name == but:
            continue
        for export in read_exports(files.read(name) or b""):
            if export.path.rstrip("/") == path:
                found.append(f"{name}:{export.line}")
    return sorted(set(found))


def _lines(content: bytes) -> list[tuple[int, list[bytes]]]:
    """Return the words of each entry, and the line it begins on; a backslash joins lines."""
    found: list[tuple[int, list[bytes]]] = []
    words: list[bytes] = []
    word = bytearray()
    inside = quoted = False
    line = began = 1
    at = 0
    while at < len(content):
        byte = content[at]
        at += 1
        if byte == 0x5C and content[at : at + 1] == b"\n":  # a joined line
            at += 1
            line += 1
            continue
        if byte == 0x22:
            quoted, inside = not quoted, True
            continue
        if byte == 0x23 and not inside and not quoted:  # a comment, where a word could begin
            while at < len(content) and content[at] != 0x0A:
                at += 1
            continue
        if byte in _BLANK and not quoted:
            if inside:
                words.append(bytes(word))
                word, inside = bytearray(), False
            if byte == 0x0A:
                found.append((began, words))
                words = []
                line += 1
                began = line
            continue
        inside = True
        word.append(byte)
        line += byte == 0x0A
        tail = word[-4:]
        if len(tail) == 4 and tail[0] == 0x5C and all(b in _OCTAL for b in tail[1:]):
            value = int(tail[1:], 8)
            if value < 256:
                word[-4:] = bytes([value])
    if inside:
        words.append(bytes(word))
    found.append((began, words))
    return found


def exported(host: Host) -> list[str]:
    """Return the folders that are exported right now."""
    return sorted({e.path for e in read_exports(host.run(["exportfs", "-s"]).out.encode())})
