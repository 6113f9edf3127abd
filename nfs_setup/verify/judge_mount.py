"""Whether there is a share, of what kind, mounted or exported with options that fit."""

from __future__ import annotations

from nfs_setup.mounts import Mount, advice_on
from nfs_setup.verify.facts import Failure, Surroundings
from nfs_setup.verify.finding import Finding, Level
from nfs_setup.verify.judge_failure import failed
from nfs_setup.verify.kinds import kind_of
from nfs_setup.verify.surveyed import MachineFacts

#: Options that are worth a word in the table.
_TELLING = ("rw", "ro", "vers", "hard", "soft", "softerr", "sec", "proto", "nconnect", "noac",
            "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "lookupcache", "local_lock",
            "flock", "localflock", "cache", "actimeo")  # fmt: skip


def judge_mount(machine: MachineFacts) -> list[Finding]:
    """One line for the file system, and one for each option that costs something."""
    around = machine.surroundings
    if around is None or isinstance(around, Failure):
        text, change = failed(around) if around else ("it was not looked at", "")
        return [Finding("share", machine.name, Level.WRONG, f"{machine.path}: {text}", change)]
    if around.found != "folder":
        what = "is no folder" if around.found == "other" else "is not there"
        change = "mount the share, or name the folder where it is mounted"
        return [Finding("share", machine.name, Level.WRONG, f"{machine.path} {what}", change)]
    kind = kind_of(around.kind)
    text = f"{kind.name}, {around.device} at {around.point}"
    telling = [o for o in around.options if o.partition("=")[0] in _TELLING]
    text += f" ({','.join(telling)})" if telling and kind.network else ""
    text += f"; {kind.remark}" if kind.remark else ""
    lines = [Finding("share", machine.name, Level.PASSES, text)]
    mount = Mount(around.device, around.point, around.kind, around.options)
    for advice in advice_on(mount):
        meant = mount.kind in ("tmpfs", "ramfs") and "memory" in advice.text
        level = Level.WRONG if advice.level == "trouble" and not meant else Level.NOTE
        lines.append(_advised(machine.name, level, advice.text))
    if around.kind == "lustre" and not {"flock", "localflock"} & set(around.options):
        lines.append(_advised(machine.name, Level.NOTE, "no 'flock': locks do not work"))
    return lines + _exported(machine.name, around)


def _advised(where: str, level: Level, text: str) -> Finding:
    seen, _, change = text.partition("; ")
    return Finding("mount options", where, level, seen, change)


def _exported(where: str, around: Surroundings) -> list[Finding]:
    """On the machine that exports the folder; nobody else can see these."""
    lines = []
    for export in around.exports:
        client, _, rest = export.partition("(")
        options = rest.rstrip(")").split(",")
        if "async" in options:
            text = f"async for {client}: a crash of this server loses what clients believe written"
            change = "export it 'sync'"
            lines.append(Finding("export", where, Level.WRONG, text, change))
        if "no_root_squash" in options:
            lines.append(_open(where, f"no_root_squash for {client}: root there is root here"))
        if client == "*":
            lines.append(_open(where, "to everybody who can reach this machine ('*')"))
        if not {"async", "no_root_squash"} & set(options) and client != "*":
            lines.append(Finding("export", where, Level.PASSES, f"to {client}, synchronously"))
    return lines


def _open(where: str, text: str) -> Finding:
    change = "export it to named machines with root_squash, unless it is meant"
    return Finding("export", where, Level.NOTE, text, change)
