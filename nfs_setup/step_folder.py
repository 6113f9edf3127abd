"""A folder with its owner, group and mode. What lies in a folder is never removed."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Any

from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.host import Host
from nfs_setup.ledger import Ledger
from nfs_setup.step import Change, KnownBefore

#: What ``getent`` is asked for: no option, and nothing that a shell would read.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,255}\$?")


@dataclass(frozen=True)
class Folder(KnownBefore):
    """A folder that is there, and as wanted if ``uid``, ``gid`` and ``mode`` are given."""

    path: str
    mode: int = 0o755
    uid: int = 0
    gid: int = 0
    adopt: bool = False  # change owner and mode of one that is there already
    owner_text: str = ""
    shared: bool = False
    kind: str = "folder"

    @property
    def title(self) -> str:
        """The path of the folder."""
        return self.path

    def change(self, host: Host) -> Change | None:
        """Return the folders to make, or what differs."""
        owner = self.owner_text or f"owner {self.uid}, group {self.gid}"
        found = host.stat(self.path)
        if found is None:
            made = " ".join(_missing(host, self.path))
            return Change(f"make {self.path}", f"folders: {made}\n{owner}, mode {self.mode:04o}\n")
        if found.kind != "folder":
            raise MachineRefuses("exists and is no folder", where=self.path)
        if not self.adopt or (found.mode, found.uid, found.gid) == (self.mode, self.uid, self.gid):
            return None
        was = f"owner {found.uid}, group {found.gid}, mode {found.mode:04o}"
        return Change(
            f"change owner and mode of {self.path}", f"was: {was}\nwill: {owner}, {self.mode:04o}\n"
        )

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """Return the folders that are to be made; owner and mode of one that is there."""
        found = host.stat(self.path)
        data: dict[str, Any] = {"path": self.path, "made": _missing(host, self.path)}
        if found is not None:
            data["was"] = [found.mode, found.uid, found.gid]
            data["will"] = [self.mode, self.uid, self.gid]
        return data

    def apply(self, host: Host) -> None:
        """Make folders, the outermost first; those on the way are root's, 0755."""
        for folder in _missing(host, self.path):
            host.make_folder(folder, 0o755)
        host.set_owner(self.path, self.mode, self.uid, self.gid)


def undo_folder(host: Host, ledger: Ledger, data: dict[str, Any]) -> str:
    """See :class:`nfs_setup.step.Undo`. Removes what we made, where it is empty; gives back owner
    and mode."""
    path, was = data["path"], data.get("was")
    if was is not None:
        found = host.stat(path)
        if found is None:
            return "is gone"
        if found.kind != "folder":
            return f"is a {found.kind} by now: it stays so"
        if why := host.why_movable(path):
            return f"{why}: its owner and mode stay as they are"
        if [found.mode, found.uid, found.gid] == data["will"]:
            host.set_owner(path, *was)
        elif [found.mode, found.uid, found.gid] != was:
            return "others have changed its owner or mode since: it stays so"
        return ""
    for folder in reversed(data["made"]):
        if why := host.why_movable(folder):
            return f"{why}: it stays"
        if not host.remove_folder(folder):
            return f"{folder} is not empty: it stays with all that is in it"
    return ""


def _missing(host: Host, path: str) -> list[str]:
    missing: list[str] = []
    while host.stat(path) is None:
        missing.insert(0, path)
        path = posixpath.dirname(path)
    return missing


def user_ids(host: Host, text: str) -> tuple[int, int]:
    """Return a user's id and primary group, as this machine knows them (files, LDAP, …).

    A number need not be known here; it has a group of its own then.

    Raises:
        RequestRefused: if the text is no name.
        MachineRefuses: if there is no such user.
    """
    fields = _entry(host, "passwd", text)
    if fields is None:
        return int(text), int(text)
    return int(fields[2]), int(fields[3])


def group_id(host: Host, text: str) -> int:
    """Return a group's id.

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
