"""Habits of a file system that weights cannot do without, and those that are only good to know."""

from __future__ import annotations

from nfs_setup.verify.facts import Failure, Habits
from nfs_setup.verify.finding import Finding, Level
from nfs_setup.verify.judge_failure import failed
from nfs_setup.verify.surveyed import MachineFacts

#: Habit → how bad its lack is, what that means, what to do.
_LACKS: dict[str, tuple[Level, str, str]] = {
    "fsync": (
        Level.WRONG,
        "a power cut loses weights that were announced",
        "choose another file system for weights",
    ),
    "fsync of a folder": (
        Level.NOTE,
        "a power cut of the server may lose the names of new files",
        "",
    ),
    "exclusive create": (
        Level.WRONG,
        "two writers can take one name",
        "choose another file system; for old NFS, mount version 3 or later",
    ),
    "replace an open file": (
        Level.WRONG,
        "publishing fails while somebody reads",
        "choose another file system (SMB: a server with POSIX extensions)",
    ),
    "remove an open file": (
        Level.NOTE,
        "readers of a removed file lose it, or .nfs files stay until they are done",
        "bequeath pins what is read and cleans up after; nothing to do",
    ),
    "upper and lower case": (
        Level.NOTE,
        "names that differ in case only are one",
        "give experiments names that differ in more",
    ),
    "names of 255 bytes": (Level.NOTE, "long names are refused", "give experiments short names"),
    "odd names": (
        Level.NOTE,
        "blanks, colons or accents in names are changed or refused",
        "use plain letters in names of experiments and keys",
    ),
    "file modes": (
        Level.NOTE,
        "modes are those of the mount, not of files",
        "let the mount's own options say who may read",
    ),
    "sparse files": (Level.NOTE, "holes take room", ""),
}


def judge_habits(machine: MachineFacts) -> list[Finding]:
    """One line for all that is as it should be, and one for each that is not."""
    habits = machine.habits
    if habits is None:
        return []
    if isinstance(habits, Failure):
        text, change = failed(habits)
        return [Finding("habits", machine.name, Level.WRONG, text, change)]
    return _judged(machine.name, habits)


def _judged(where: str, habits: Habits) -> list[Finding]:
    lines = []
    for name, (level, meaning, change) in _LACKS.items():
        answer = habits.found.get(name, "not tried")
        if answer in ("ENOSPC", "EDQUOT", "EROFS"):  # no habit of a file system
            text, change = failed(Failure(name, answer, ""))
            lines.append(Finding("writing", where, Level.WRONG, text, change))
        elif answer != "yes":
            code = "" if answer == "no" else f" ({answer})"
            lines.append(Finding(name, where, level, f"{meaning}{code}", change))
    good = [name for name in _LACKS if habits.found.get(name) == "yes"]
    if good:
        text = f"{len(good)} of {len(_LACKS)} are as weights need them"
        lines.insert(0, Finding("habits", where, Level.PASSES, text))
    return lines
