"""Findings of judgements: one check, where, how it stands, what was seen, what to change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from nfs_setup.verify.facts import Failure


class Level(str, Enum):
    """Severity of a finding. ``slow`` costs time only, a ``note`` may be meant, ``wrong`` costs
    results or stops experiments."""

    PASSES = "passes"
    NOTE = "note"
    SLOW = "slow"
    WRONG = "wrong"


#: The worst last.
ORDER = (Level.PASSES, Level.NOTE, Level.SLOW, Level.WRONG)


@dataclass(frozen=True)
class Finding:
    """One line of the table. ``where``: a machine, or ``reader ← writer``; ``change`` is a
    sentence, empty where nothing need be done."""

    check: str
    where: str
    level: Level
    seen: str
    change: str = ""


def merged(findings: list[Finding]) -> list[Finding]:
    """Merge findings that differ in their machine only, in the order of the checks; of one check,
    the worst first."""
    places: dict[tuple[str, Level, str, str], list[str]] = {}
    for one in findings:
        places.setdefault((one.check, one.level, one.seen, one.change), []).append(one.where)
    checks = list(dict.fromkeys(one.check for one in findings))
    found = [Finding(c, _named(w), level, s, ch) for (c, level, s, ch), w in places.items()]
    return sorted(found, key=lambda f: (checks.index(f.check), -ORDER.index(f.level)))


def _named(places: list[str]) -> str:
    few = list(dict.fromkeys(places))
    return ", ".join(few) if len(few) <= 4 else f"{', '.join(few[:3])} and {len(few) - 3} more"


_MEANINGS: dict[str, tuple[str, str]] = {
    "EROFS": (
        "it is read-only here",
        "mount it 'rw'; if it is, let the server export it 'rw' to this machine (exportfs -v)",
    ),
    "EACCES": (
        "this user may not do that",
        "give the folder to the user or group of the trials (on a share of ours: bequeath nfs "
        "server DIR … --owner USER --group GROUP), or name a folder of theirs below it; root of "
        "a client is nobody there (root_squash)",
    ),
    "ENOSPC": ("it is full", "make room, or let retention delete more weights"),
    "EDQUOT": ("the quota is used up", "ask for more, or let retention delete more weights"),
    "ESTALE": (
        "the server does not know this folder any more",
        "mount it again: it was exported anew, or the folder behind it was replaced",
    ),
    "EIO": ("input or output failed", "see the kernel's log (dmesg) here and on the server"),
    "ENOENT": (
        "what another machine made does not show here",
        "look whether both mount the same folder of the same server",
    ),
    "ENOLCK": ("there is nobody to ask for locks", "NFSv4 needs no lock service; 3 needs statd"),
    "ETIMEDOUT": ("the server did not answer", "mount it 'hard', and see the network"),
    "HANGS": (
        "no answer came in time",
        "see whether the server is up, reachable and serving: programs wait for it",
    ),
    "LOST": (
        "this machine cannot be asked",
        "see whether one can log in there, and whether it has Python 3.9 or later (--python)",
    ),
}

_MEANINGS["EPERM"] = _MEANINGS["EACCES"]
_MEANINGS["EREMOTEIO"] = _MEANINGS["EIO"]


def failed(check: str, where: str, failure: Failure, level: Level = Level.WRONG) -> Finding:
    """Return the finding that an error of the system amounts to.

    Args:
        check: what was looked at.
        where: the machine, or ``reader ← writer``.
        failure: the error.
        level: how bad it is there.
    """
    text, change = meaning_of(failure)
    return Finding(check, where, level, text, change)


def meaning_of(failure: Failure) -> tuple[str, str]:
    """Return the text of a finding, and what to change."""
    meaning, change = _MEANINGS.get(failure.code, ("the system refuses it", ""))
    text = failure.text if failure.code in ("HANGS", "LOST", "REFUSED") else failure.code
    return f"{meaning} ({failure.doing}: {text})", change


def pairs_text(places: list[str], of: int) -> str:
    """Return a text for pairs of machines; ``of``: how many there are in all."""
    if len(places) == of and of > 4:
        return f"all {of} pairs"
    return ", ".join(places) if len(places) <= 4 else f"{len(places)} of {of} pairs"
