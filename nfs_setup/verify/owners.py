"""Owners of files: as made, as others see them, and their groups."""

from __future__ import annotations

from collections.abc import Sequence

from nfs_setup.verify.facts import Begun, Failure, MachineFacts, Published, Seen, Surroundings
from nfs_setup.verify.findings import Finding, Level, failed, meaning_of
from nfs_setup.verify.place import kind_of

#: What stands for "somebody that is not known here": of Linux, of old systems, of NFSv4.
NOBODY = (65534, 99, 4294967294)

_IDMAP = (
    "let both sides know users by the same numbers; with NFSv4 and names, set the same Domain "
    "in /etc/idmapd.conf, or nfs4_disable_idmapping=Y of the modules nfs and nfsd"
)


def judge_owner(machine: MachineFacts) -> list[Finding]:
    """Judge whether a machine could write, and as whom."""
    around, begun = machine.surroundings, machine.begun
    if not isinstance(around, Surroundings) or around.found != "folder":
        return []
    if isinstance(begun, Failure) and begun.code == "ENOENT":
        return [failed("the same share", machine.name, begun)]
    if not isinstance(begun, Begun):
        text, change = meaning_of(begun) if begun else ("not asked", "")
        if begun is not None and begun.code in ("EACCES", "EPERM"):
            folder = f"uid {around.uid}, folder of {around.owner}:{around.group}"
            text = f"{text[:-1]}; {folder}, mode {around.mode:04o})"
        return [Finding("writing", machine.name, Level.WRONG, text, change)]
    network = kind_of(around.kind).network
    return [_writer(machine.name, around, begun, network), *_group(machine.name, begun, network)]


def judge_owners_between(machines: Sequence[MachineFacts]) -> list[Finding]:
    """Judge whether a file belongs to the same user on all machines."""
    found = []
    writers = {m.name: m.published for m in machines}
    for reader in machines:
        if not isinstance(reader.seen, Seen):
            continue
        for writer, owner in reader.seen.owners.items():
            made = writers.get(writer)
            if not isinstance(made, Published) or ":" not in owner:
                continue
            where = f"{reader.name} ← {writer}"
            theirs = f"{made.uid}:{made.gid}"
            if owner == theirs:
                found.append(Finding("same owner", where, Level.PASSES, f"uid:gid {owner}"))
            else:
                text = f"made by {theirs}, seen as {owner}"
                found.append(Finding("same owner", where, Level.NOTE, text, _IDMAP))
    return found


def _writer(where: str, around: Surroundings, begun: Begun, network: bool) -> Finding:
    me, shown = around.uid, begun.uid
    if me == 0 and shown != 0:
        return Finding("writing", where, Level.PASSES, f"root is uid {shown} there (root_squash)")
    if me == 0 and network:
        text = "root of this machine is root of the share (no_root_squash)"
        change = "export it with root_squash, unless that is meant: root here can forge any file"
        return Finding("writing", where, Level.NOTE, text, change)
    if me == shown:
        return Finding("writing", where, Level.PASSES, f"as uid {me}")
    text = f"files of uid {me} belong to {shown}"
    text += " (nobody)" if shown in NOBODY else ""
    change = f"{_IDMAP}; fine if the share is for one user only (all_squash)"
    return Finding("writing", where, Level.NOTE, text, change)


def _group(where: str, begun: Begun, network: bool) -> list[Finding]:
    if begun.parent_set_gid and not (begun.set_gid and begun.gid == begun.parent_gid):
        text = f"set-gid of the folder is not passed on: gid {begun.gid}, not {begun.parent_gid}"
        change = "let all trials run as one user, or as users of one primary group"
        return [Finding("group", where, Level.NOTE, text, change)]
    if begun.parent_set_gid:
        text = f"what is made belongs to group {begun.gid} (set-gid)"
        return [Finding("group", where, Level.PASSES, text)]
    if not network:
        return []
    text = "the folder is not set-gid: files belong to their maker's own group"
    change = "for trials of several users: chgrp GROUP DIR; chmod g+rwxs DIR"
    return [Finding("group", where, Level.NOTE, text, change)]
