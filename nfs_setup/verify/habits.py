"""Habits of a file system, each tried once and alone: those that weights cannot do without, and
others that are good to know."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from nfs_setup.verify.facts import Failure, Habits, MachineFacts, Probes
from nfs_setup.verify.files import code_of, get, put
from nfs_setup.verify.findings import Finding, Level, failed
from nfs_setup.verify.peers import Asked

_LONGEST_NAME = 255
_SPARSE_BYTES = 16 << 20


def _fsync(folder: str) -> bool:
    put(os.path.join(folder, "file"), b"content")
    return True


def _fsync_folder(folder: str) -> bool:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


def _exclusive(folder: str) -> bool:
    """Whether a second one that makes the same name is refused."""
    path = os.path.join(folder, "file")
    put(path, b"first")
    try:
        put(path, b"second")
    except FileExistsError:
        return get(path) == b"first"
    return False


def _replaces_open(folder: str) -> bool:
    """Whether a file can be replaced under a reader, who goes on with the old one."""
    path = os.path.join(folder, "file")
    put(path, b"old")
    put(path + ".new", b"new")
    with open(path, "rb") as reader:
        os.rename(path + ".new", path)
        return reader.read() == b"old" and get(path) == b"new"


def _reads_removed(folder: str) -> bool:
    """Whether a removed file stays for readers that have it open, and leaves nothing behind."""
    path = os.path.join(folder, "file")
    put(path, b"content")
    with open(path, "rb") as reader:
        os.unlink(path)
        content = reader.read()
    return content == b"content" and not os.listdir(folder)  # no .nfsXXXX


def _case(folder: str) -> bool:
    put(os.path.join(folder, "name"), b"")
    return not os.path.exists(os.path.join(folder, "NAME"))


def _long_names(folder: str) -> bool:
    put(os.path.join(folder, "n" * _LONGEST_NAME), b"")
    return True


def _odd_names(folder: str) -> bool:
    name = "a b:c*?é"
    put(os.path.join(folder, name), b"")
    return os.listdir(folder) == [name]


def _modes(folder: str) -> bool:
    path = os.path.join(folder, "file")
    # By the descriptor that made it: root may verify a share in which others can swap names.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o660)
    try:
        os.fchmod(descriptor, 0o640)
    finally:
        os.close(descriptor)
    return stat.S_IMODE(os.stat(path).st_mode) == 0o640


def _sparse(folder: str) -> bool:
    """Whether a hole takes no room."""
    path = os.path.join(folder, "file")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o660)
    try:
        os.pwrite(descriptor, b"x", _SPARSE_BYTES)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    found = os.stat(path)
    return found.st_size == _SPARSE_BYTES + 1 and found.st_blocks * 512 < _SPARSE_BYTES // 2


class Habit(NamedTuple):
    """One way to behave. ``try_it`` gets an empty folder and says whether it shows; ``level``,
    ``meaning`` and ``change`` are how bad its lack is, what that means, and what to do."""

    try_it: Callable[[str], bool]
    level: Level
    meaning: str
    change: str = ""


HABITS: dict[str, Habit] = {
    "fsync": Habit(
        _fsync,
        Level.WRONG,
        "a power cut loses weights that were announced",
        "choose another file system for weights",
    ),
    "fsync of a folder": Habit(
        _fsync_folder, Level.NOTE, "a power cut of the server may lose the names of new files"
    ),
    "exclusive create": Habit(
        _exclusive,
        Level.WRONG,
        "two writers can take one name",
        "choose another file system; for old NFS, mount version 3 or later",
    ),
    "replace an open file": Habit(
        _replaces_open,
        Level.WRONG,
        "publishing fails while somebody reads",
        "choose another file system (SMB: a server with POSIX extensions)",
    ),
    "remove an open file": Habit(
        _reads_removed,
        Level.NOTE,
        "readers of a removed file lose it, or .nfs files stay until they are done",
        "bequeath pins what is read and cleans up after; nothing to do",
    ),
    "upper and lower case": Habit(
        _case,
        Level.NOTE,
        "names that differ in case only are one",
        "give experiments names that differ in more",
    ),
    "names of 255 bytes": Habit(
        _long_names, Level.NOTE, "long names are refused", "give experiments short names"
    ),
    "odd names": Habit(
        _odd_names,
        Level.NOTE,
        "blanks, colons or accents in names are changed or refused",
        "use plain letters in names of experiments and keys",
    ),
    "file modes": Habit(
        _modes,
        Level.NOTE,
        "modes are those of the mount, not of files",
        "let the mount's own options decide who may read",
    ),
    "sparse files": Habit(_sparse, Level.NOTE, "holes take room"),
}


def try_habits(folder: str) -> Habits:
    """Try each habit in a folder of its own machine. What the system refuses is an answer."""
    os.mkdir(os.path.join(folder, "habits"))
    shown: dict[str, str] = {}
    for name, habit in HABITS.items():
        place = os.path.join(folder, "habits", name)
        os.mkdir(place)
        try:
            shown[name] = "yes" if habit.try_it(place) else "no"
        except OSError as error:
            shown[name] = code_of(error)
    return Habits(shown)


PROBES: Probes = {"habits": try_habits}


def ask_habits(machine: Asked) -> None:
    """Have a machine try all habits."""
    machine.facts.habits = machine.ask(Habits, "habits", folder=machine.inside(machine.own))


def judge_habits(machine: MachineFacts) -> list[Finding]:
    """Return one line for all that is as it should be, and one for each habit that is not."""
    habits = machine.habits
    if habits is None:
        return []
    if isinstance(habits, Failure):
        return [failed("habits", machine.name, habits)]
    where, lines = machine.name, []
    for name, habit in HABITS.items():
        answer = habits.found.get(name, "not tried")
        if answer in ("ENOSPC", "EDQUOT", "EROFS"):  # no habit of a file system
            lines.append(failed("writing", where, Failure(name, answer, "")))
        elif answer != "yes":
            code = "" if answer == "no" else f" ({answer})"
            text = f"{habit.meaning}{code}"
            lines.append(Finding(name, where, habit.level, text, habit.change))
    good = [name for name in HABITS if habits.found.get(name) == "yes"]
    if good:
        text = f"{len(good)} of {len(HABITS)} are as weights need them"
        lines.insert(0, Finding("habits", where, Level.PASSES, text))
    return lines
