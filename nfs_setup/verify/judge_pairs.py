"""What only shows between machines: late views, torn and missing files, locks."""

from __future__ import annotations

from collections.abc import Sequence

from nfs_setup.mounts import READER_PATIENCE_S
from nfs_setup.verify.facts import Churned, Failure, Held, Seen
from nfs_setup.verify.finding import ORDER, Finding, Level
from nfs_setup.verify.judge_failure import failed
from nfs_setup.verify.surveyed import Locked, MachineFacts, Survey

#: Later than this, a reader has noticeably waited.
_SOON_S = 1.0

#: Case → its name in the table, how bad it is if it is late, and what that means.
_CASES: dict[str, tuple[str, Level, str]] = {
    "new": ("new file", Level.SLOW, "a child starts so much later than its parent ends"),
    "replaced": ("replaced file", Level.SLOW, "readers wait that out"),
    "sought": (
        "looked for too early",
        Level.NOTE,
        "who asks before a file is there is told so much longer that it is not; bequeath asks "
        "only for what was announced",
    ),
    "listed": ("listed folder", Level.NOTE, "'ls' is behind; bequeath lists nothing it counts on"),
}

_SHORTER = "to shorten it, mount with lookupcache=pos, or actimeo=5"
_TOO_LATE = (
    f"readers of weights give up after {READER_PATIENCE_S} s: mount with acdirmax=60 or less "
    "(what the kernel has by itself), and see whether the server is overloaded"
)


def judge_views(survey: Survey) -> list[Finding]:
    """When a reader saw what a writer had published, each case over all pairs."""
    seen: dict[str, list[tuple[str, float]]] = {}
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
                seen.setdefault(case, []).append((f"{reader.name} ← {writer}", delay))
            lines += _torn(reader.name, reader.seen)
    for case, delays in seen.items():
        lines += _delays(case, delays, survey.watched_s)
    return lines


def _delays(case: str, delays: list[tuple[str, float]], watched_s: float) -> list[Finding]:
    name, late, meaning = _CASES[case]
    by_level: dict[Level, list[tuple[str, float]]] = {}
    for where, delay in delays:
        gone = delay < 0 or delay > READER_PATIENCE_S
        level = Level.WRONG if gone else late if delay > _SOON_S else Level.PASSES
        by_level.setdefault(level, []).append((where, delay))
    lines = []
    for level in reversed(ORDER):
        if level not in by_level:
            continue
        found = [delay for _, delay in by_level[level]]
        where = _pairs([where for where, _ in by_level[level]], len(delays))
        if level is Level.PASSES:
            text = f"seen after {max(found):.2f} s at most"
            lines.append(Finding(name, where, level, text))
        elif level is Level.WRONG:
            never = min(found) < 0
            text = f"not seen in {watched_s:.0f} s" if never else f"after {max(found):.0f} s"
            lines.append(Finding(name, where, level, text, _TOO_LATE))
        else:
            text = f"seen after up to {max(found):.1f} s: {meaning}"
            lines.append(Finding(name, where, level, text, _SHORTER))
    return lines


def _torn(reader: str, seen: Seen) -> list[Finding]:
    lines = []
    for key, count in seen.torn.items():
        writer, _, case = key.rpartition("/")
        text = f"{_CASES[case][0]}: {count} times neither the old nor the new content"
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
    where: str, writer: str, found: Churned, good: list[tuple[str, int, int]]
) -> list[Finding]:
    name, lines = "replaced while read", []
    reads, torn, missing = found.reads[writer], found.torn[writer], found.missing[writer]
    if torn:
        text = f"{torn} of {reads + torn} reads were torn"
        change = "do not use it: rename does not replace files in one go"
        lines.append(Finding(name, where, Level.WRONG, text, change))
    if missing:
        text = f"{missing} times there was no file under the name"
        change = "do not use it: rename takes the old file away first"
        lines.append(Finding(name, where, Level.WRONG, text, change))
    if found.backwards[writer]:
        text = f"{found.backwards[writer]} times an older file came back"
        lines.append(Finding(name, where, Level.NOTE, text, "readers check digests; see caches"))
    if not reads and not torn and not missing:
        lines.append(Finding(name, where, Level.NOTE, "no read came to its end", ""))
    if not lines:
        good.append((where, reads, found.stale[writer]))
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
