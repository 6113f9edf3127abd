"""Room for weights, and clocks that agree."""

from __future__ import annotations

from collections.abc import Sequence

from nfs_setup.verify.facts import Begun, Clock, MachineFacts, Surroundings
from nfs_setup.verify.findings import Finding, Level

_NO_ROOM_BYTES = 64 << 20
_LITTLE_BYTES = 10 << 30
_LITTLE_PART = 0.05
_NO_INODES = 1000

#: Seconds: a difference worth a word, and one that spoils something (ages of leftovers,
#: Kerberos, which refuses 300 s).
_OFF_S, _WRONG_S = 1.0, 60.0

_SET = "run chrony or ntpd on all machines: ages of files, logs and Kerberos go by clocks"


def judge_room(machine: MachineFacts) -> list[Finding]:
    """Judge the bytes and inodes that this user may still take."""
    around = machine.surroundings
    if not isinstance(around, Surroundings) or around.found != "folder":
        return []
    free, total = around.free_bytes, around.total_bytes
    text = f"{size_text(free)} of {size_text(total)} free"
    inodes = ""
    if around.inodes:
        inodes = f", {around.inodes_free} of {around.inodes} inodes"
    if free < _NO_ROOM_BYTES or (around.inodes and around.inodes_free < _NO_INODES):
        change = "make room, or let retention delete more weights"
        return [Finding("room", machine.name, Level.WRONG, text + inodes, change)]
    if free < _LITTLE_BYTES and free < _LITTLE_PART * total:
        change = "see how much an experiment keeps (retention in docs/long-runs.md)"
        return [Finding("room", machine.name, Level.NOTE, text + inodes, change)]
    return [Finding("room", machine.name, Level.PASSES, text + inodes)]


def judge_clock(machine: MachineFacts) -> list[Finding]:
    """Judge this machine's clock against that of the files' server."""
    begun = machine.begun
    if not isinstance(begun, Begun):
        return []
    seen = Clock(begun.ahead_least_s, begun.ahead_most_s)
    return [_clock("clock and share", machine.name, "the share's", seen)]


def judge_clocks_between(machines: Sequence[MachineFacts]) -> list[Finding]:
    """Judge each machine's clock against the first one's."""
    found = []
    clocks = [(m.name, m.clock) for m in machines if m.clock is not None]
    for name, clock in clocks[1:]:
        assert clock is not None
        first = clocks[0][1]
        assert first is not None
        between = Clock(
            clock.ahead_least_s - first.ahead_most_s, clock.ahead_most_s - first.ahead_least_s
        )
        found.append(_clock("clocks", f"{name}, {clocks[0][0]}", "the first", between))
    return found


def _clock(check: str, where: str, whose: str, clock: Clock) -> Finding:
    """Judge two clocks by the least difference that the bounds allow."""
    if clock.ahead_least_s <= 0 <= clock.ahead_most_s:
        off = 0.0
    else:
        off = min(clock.ahead_least_s, clock.ahead_most_s, key=abs)
    if abs(off) < _OFF_S:
        return Finding(check, where, Level.PASSES, f"within {_OFF_S:.0f} s")
    level = Level.WRONG if abs(off) >= _WRONG_S else Level.NOTE
    side = "ahead" if off > 0 else "behind"
    text = f"{whose} clock is {abs(off):.0f} s {side}"
    return Finding(check, where, level, text, _SET)


def size_text(nbytes: float) -> str:
    """Return a size as people read it.

    >>> size_text(3 << 30)
    '3.0 GiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} TiB"
