"""Faults that only show between machines: late views, torn and missing files, locks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nfs_setup.mounts import READER_PATIENCE_S, Mount, reader_patience_s
from nfs_setup.verify.facts import Churned, Failure, Held, Seen, Surroundings
from nfs_setup.verify.finding import ORDER, Finding, Level
from nfs_setup.verify.judge_failure import failed
from nfs_setup.verify.surveyed import Locked, MachineFacts, Survey

#: Later than this, a reader has noticeably waited.
_SOON_S = 1.0


class _Case(NamedTuple):
    """``matters``: readers of weights look in this way; else only other programs do."""

    name: str
    matters: bool
    meaning: str


_CASES: dict[str, _Case] = {
    "new": _Case("new file", True, "a child starts so much later than its parent ends"),
    "announced": _Case("announced file", True, "a child starts so much later than its parent ends"),
    "replaced": _Case("replaced file", True, "readers wait that out"),
    "sought": _Case(
        "looked for too early",
        False,
        "a program that looks before a file is there believes for so long that it is not",
    ),
    "listed": _Case("listed folder", False, "'ls' is behind"),
}

_SHORTER = "see the load of the server and the network; on NFS, mount without nocto"
_TOO_LATE = (
    "readers of weights give up after {:.0f} s: see whether both have the same folder of the "
    "same server, and its load; on NFS, mount without nocto and with acdirmax=60 or less"
)
_OTHERS = "nothing for bequeath, which asks the server; for other programs: lookupcache=pos"


def judge_views(survey: Survey) -> list[Finding]:
    """When a reader saw what a writer had published, each case over all pairs."""
    seen: dict[str, list[_Delay]] = {}
    lines = []
    for reader in survey.machines:
        if isinstance(reader.published, Failure):
            text, change = failed(reader.published)
            lines.append(Finding("publishing", reader.name, Level.WRONG, text, change))
        if isinstance(reader.seen, Failure):
            text, change = failed(reader.seen)
            lines.append(Finding("seen by others", reader.name, Level.WRONG, text, change))
        elif reader.seen is not None:
            for key, delay in reader.seen.delays_s.items():
                writer, _, case = key.rpartition("/")
                late = delay < 0 or delay > _patience_s(reader)
                one = _Delay(f"{reader.name} ← {writer}", delay, late, _patience_s(reader))
                seen.setdefault(case, []).append(one)
            lines += _torn(reader.name, reader.seen)
    for case, delays in seen.items():
        lines += _delays(case, delays, survey.watched_s)
    return lines


class _Delay(NamedTuple):
    where: str
    seconds: float  # negative: never
    too_late: bool
    patience_s: float


def _patience_s(reader: MachineFacts) -> float:
    around = reader.surroundings
    if not isinstance(around, Surroundings):
        return float(READER_PATIENCE_S)
    return reader_patience_s(Mount(around.device, around.point, around.kind, around.options))


def _level(case: _Case, delay: _Delay) -> Level:
    if not delay.too_late and delay.seconds <= _SOON_S:
        return Level.PASSES
    if not case.matters:
        return Level.NOTE
    return Level.WRONG if delay.too_late else Level.SLOW


def _delays(name: str, delays: list[_Delay], watched_s: float) -> list[Finding]:
    case = _CASES[name]
    lines = []
    for level in reversed(ORDER):
        these = [delay for delay in delays if _level(case, delay) is level]
        if not these:
            continue
        where = _pairs([delay.where for delay in these], len(delays))
        worst = max(delay.seconds for delay in these)
        never = min(delay.seconds for delay in these) < 0
        text = f"not seen in {watched_s:.0f} s" if never else f"seen after up to {worst:.2f} s"
        text += "" if level is Level.PASSES else f": {case.meaning}"
        change = {
            Level.PASSES: "",
            Level.NOTE: _OTHERS,
            Level.SLOW: _SHORTER,
            Level.WRONG: _TOO_LATE.format(these[0].patience_s),
        }[level]
        lines.append(Finding(case.name, where, level, text, change))
    return lines


def _torn(reader: str, seen: Seen) -> list[Finding]:
    lines = []
    for key, count in seen.torn.items():
        writer, _, case = key.rpartition("/")
        text = f"{_CASES[case].name}: {count} times neither the old nor the new content"
        change = "do not use it: half a file shows under its final name"
        lines.append(Finding("whole files", f"{reader} ← {writer}", Level.WRONG, text, change))
    refused = {key: code for key, code in seen.errors.items() if code in ("EACCES", "EPERM")}
    for key, code in refused.items():
        text, change = failed(Failure("reading what another made", code, ""))
        where = f"{reader} ← {key.rpartition('/')[0]}"
        lines.append(Finding("seen by others", where, Level.WRONG, text, change))
    return lines


def judge_churn(machines: Sequence[MachineFacts]) -> list[Finding]:
    """Files that were replaced while they were read."""
    lines: list[Finding] = []
    good: list[tuple[str, int, int]] = []
    for reader in machines:
        churned = reader.churned
        if isinstance(churned, Failure):
            text, change = failed(churned)
            lines.append(Finding("replaced while read", reader.name, Level.WRONG, text, change))
        elif churned is not None:
            for writer in churned.reads:
                lines += _churned(f"{reader.name} ← {writer}", writer, churned, good)
    if good:
        reads, stale = sum(g[1] for g in good), sum(g[2] for g in good)
        text = f"{reads} reads, none torn, none missing"
        if stale:
            text += f"; {stale} times the old file was gone (ESTALE), which a new open mends"
        where = _pairs([g[0] for g in good], len(good))
        lines.append(Finding("replaced while read", where, Level.PASSES, text))
    return lines


def _churned(
    where: str, writer: str, churned: Churned, good: list[tuple[str, int, int]]
) -> list[Finding]:
    name, lines = "replaced while read", []
    reads, torn, missing = churned.reads[writer], churned.torn[writer], churned.missing[writer]
    if torn:
        text = f"{torn} of {reads + torn} reads were torn"
        change = "do not use it: rename does not replace files in one go"
        lines.append(Finding(name, where, Level.WRONG, text, change))
    if missing:
        text = f"{missing} times there was no file under the name"
        change = "do not use it: rename takes the old file away first"
        lines.append(Finding(name, where, Level.WRONG, text, change))
    if churned.backwards[writer]:
        text = f"{churned.backwards[writer]} times an older file came back"
        lines.append(Finding(name, where, Level.NOTE, text, "readers check digests; see caches"))
    if not reads and not torn and not missing:
        lines.append(Finding(name, where, Level.NOTE, "no read came to its end", ""))
    if not lines:
        good.append((where, reads, churned.stale[writer]))
    return lines


def judge_locks(locks: Sequence[Locked]) -> list[Finding]:
    """Locks between machines. Nothing of bequeath on a share counts on them."""
    lines = []
    for one in locks:
        where = f"{one.other} ← {one.holder}"
        bad = next((h for h in (one.held, one.tried) if isinstance(h, Failure)), None)
        error = next(
            (h.error for h in (one.held, one.tried) if isinstance(h, Held) and h.error), ""
        )
        if isinstance(one.tried, Held) and one.tried.refused:
            lines.append(Finding("locks", where, Level.PASSES, "one keeps the other out"))
            continue
        text = failed(bad)[0] if bad else f"they do not work ({error})" if error else ""
        text = text or "a lock of one does not keep the other out"
        change = "nothing for bequeath, whose weights need none; other programs may"
        lines.append(Finding("locks", where, Level.NOTE, text, change))
    return lines


def _pairs(places: list[str], of: int) -> str:
    if len(places) == of and of > 4:
        return f"all {of} pairs"
    return ", ".join(places) if len(places) <= 4 else f"{len(places)} of {of} pairs"
