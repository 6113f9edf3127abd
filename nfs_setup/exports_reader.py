"""Reads an exports file as exportfs does: by the rules of nfs-utils' own parser (xio.c, exports.c).

Used to see whether somebody else exports a folder already, and to check what we are about
to write: it is read back before it is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from nfs_setup.exports import FOLDER
from nfs_setup.host import Files, Host

_OCTAL = frozenset(b"01234567")
_BLANK = frozenset(b" \t\n\r\v\f")


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
