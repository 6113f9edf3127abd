"""A finding of a judgement: one check, where, how it stands, what was seen, what to change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
