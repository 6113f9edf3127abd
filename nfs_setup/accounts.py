"""Users and groups by name, as this machine knows them (files, LDAP, …: by ``getent``)."""

from __future__ import annotations

import re

from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.host import Host

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,255}\$?")


def user(host: Host, text: str) -> tuple[int, int]:
    """A user's id and primary group; a number need not be known here (then its own group).

    Raises:
        RequestRefused: if the text is no name.
        MachineRefuses: if there is no such user.
    """
    fields = _entry(host, "passwd", text)
    if fields is None:
        return int(text), int(text)
    return int(fields[2]), int(fields[3])


def group(host: Host, text: str) -> int:
    """A group's id.

    Raises:
        RequestRefused: if the text is no name.
        MachineRefuses: if there is no such group.
    """
    fields = _entry(host, "group", text)
    return int(text) if fields is None else int(fields[2])


def _entry(host: Host, table: str, text: str) -> list[str] | None:
    what = "user" if table == "passwd" else "group"
    if not _NAME.fullmatch(text):
        raise RequestRefused(f"is no name of a {what}", where=repr(text))
    fields = host.run(["getent", table, text]).out.strip().split(":")
    if len(fields) > 3:
        return fields
    if text.isdigit():
        return None
    raise MachineRefuses(
        f"this machine knows no {what} {text!r}",
        hint=f"create it, with the same number on all machines, or give the {what}'s number",
    )
