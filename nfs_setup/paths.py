"""Paths and names before they reach a configuration file: checked, then escaped.

exports(5) and fstab(5) separate words by blanks and entries by line ends, and both read a
backslash with three octal digits as one byte. So every byte of a path that is not plainly
harmless is written that way. A backslash itself is refused, since exportfs decodes over what it
has decoded: ``a\\134101``, which should be a backslash and three digits, is read as ``aA``.
"""

from __future__ import annotations

import os
import posixpath
import re

from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.host import Files

_HARMLESS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+@%,:=~")

#: Linux, limits.h: PATH_MAX; and NFS_MAXPATHLEN of nfs-utils, which is smaller.
_LONGEST = 1024

_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")


def checked_path(text: str, what: str) -> str:
    """Return an absolute path in its one spelling, without what no configuration file can hold.

    Raises:
        RequestRefused: naming ``what`` and the reason.
    """
    where = f"{what} {text!r}"
    if not text.startswith("/"):
        raise RequestRefused("is not an absolute path", where=where, hint="begin it with /")
    bad = next((c for c in text if ord(c) < 0x20 or ord(c) == 0x7F or c in '\\"'), None)
    if bad is not None:
        name = {"\n": "a line end", "\\": "a backslash", '"': "a quotation mark"}.get(bad)
        raise RequestRefused(
            f"holds {name or f'the control character {ord(bad):#04x}'}, "
            "which configuration files of NFS cannot hold safely",
            where=where,
        )
    if len(os.fsencode(text)) > _LONGEST:
        raise RequestRefused(f"is longer than {_LONGEST} bytes", where=f"{what} {text[:40]!r}…")
    plain = posixpath.normpath(text)
    if plain.startswith("//") or plain != text.rstrip("/"):
        if plain.lstrip("/") == "":
            raise RequestRefused("is the root of the whole system", where=where)
        raise RequestRefused(
            "is not in its plain form", where=where, hint=f"write {'/' + plain.lstrip('/')}"
        )
    return plain


def escaped(path: str) -> str:
    """Return a checked path as one word of exports(5) and fstab(5).

    >>> escaped("/srv/my weights")
    '/srv/my\\\\040weights'
    """
    return "".join(chr(b) if b in _HARMLESS else f"\\{b:03o}" for b in os.fsencode(path))


def is_host_name(text: str) -> bool:
    """Whether a text is a host name of RFC 1123 (underscores are seen in the wild)."""
    labels = text.rstrip(".").split(".")
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in labels)


def refuse_unsafe(files: Files, path: str, what: str) -> None:
    """Refuse a path with a link or a file on its way, or a folder in which others than root can
    rename: what is exported or mounted over is exactly what was named, and stays so. Missing
    folders are fine.

    Args:
        files: the machine's files.
        path: absolute, in its plain form.
        what: what the path is, for the text of an error.

    Raises:
        MachineRefuses: at the first link or file on the way, or where others can rename.
    """
    _refuse_links(files, path, what)
    why = files.why_movable(path)
    if why:
        hint = "choose a place below folders that only root can write to, such as /srv/weights"
        raise MachineRefuses(why, where=f"{what} {path!r}", hint=hint)


def _refuse_links(files: Files, path: str, what: str) -> None:
    parts = path.strip("/").split("/")
    for end in range(1, len(parts) + 1):
        here = "/" + "/".join(parts[:end])
        found = files.stat(here)
        if found is None:
            return
        if found.kind == "link":
            target = posixpath.join(posixpath.dirname(here), files.link(here) or "?")
            raise MachineRefuses(
                f"{here} is a symbolic link",
                where=f"{what} {path!r}",
                hint=f"name the folder it leads to: {target}",
            )
        if found.kind != "folder":
            raise MachineRefuses(
                f"{here} exists and is no folder",
                where=f"{what} {path!r}",
                hint="choose another path, or move it away",
            )
