"""Speed of a share: what a trial pays for its weights. Slow costs time and no results."""

from __future__ import annotations

from nfs_setup.verify.facts import BigFile, Failure
from nfs_setup.verify.finding import Finding, Level
from nfs_setup.verify.judge_failure import failed
from nfs_setup.verify.judge_room import size_text
from nfs_setup.verify.surveyed import MachineFacts, Survey

#: A disk that turns has its fsync done in some 10 ms, a network adds one; beyond this
#: each published trial waits noticeably.
_SLOW_FSYNC_S = 0.1
_SLOW_PUBLISH_S = 0.25

#: Bytes a second. 100 Mbit/s has 12 MB/s: whatever is below has a fault or a neighbour.
_SLOW_RATE = 10e6

#: Shorter files say nothing of a rate.
_TELLING_BYTES = 4 << 20


def judge_pace(machine: MachineFacts) -> list[Finding]:
    """Small files, and the writing of a big one."""
    lines = []
    pace = machine.pace
    if isinstance(pace, Failure):
        text, change = failed(pace)
        lines.append(Finding("small files", machine.name, Level.WRONG, text, change))
    elif pace is not None:
        slow = pace.fsync_s > _SLOW_FSYNC_S or pace.publish_s > _SLOW_PUBLISH_S
        text = (
            f"published in {_ms(pace.publish_s)} (worst {_ms(pace.publish_worst_s)}), "
            f"fsync {_ms(pace.fsync_s)}"
        )
        change = "a faster disk or a cache with a battery for the server's journal; see its load"
        level = Level.SLOW if slow else Level.PASSES
        lines.append(Finding("small files", machine.name, level, text, change if slow else ""))
    if isinstance(machine.written, Failure):
        text, change = failed(machine.written)
        lines.append(Finding("big file", machine.name, Level.WRONG, text, change))
    elif machine.written is not None:
        lines.append(_rate("big file, written", machine.name, machine.written))
    return lines


def judge_rereads(survey: Survey) -> list[Finding]:
    """The reading of big files, and whether all of them came back as they were written."""
    lines = []
    written = {m.name: m.written for m in survey.machines}
    for one in survey.rereads:
        where = one.reader if one.reader == one.writer else f"{one.reader} ← {one.writer}"
        was = written.get(one.writer)
        if not isinstance(was, BigFile):
            continue
        if isinstance(one.read, Failure):
            text, change = failed(one.read)
            lines.append(Finding("big file, read", where, Level.WRONG, text, change))
            continue
        lines.append(_rate("big file, read", where, one.read))
        if (one.read.digest, one.read.nbytes) == (was.digest, was.nbytes):
            lines.append(Finding("same bytes", where, Level.PASSES, size_text(was.nbytes)))
        else:
            text = f"{size_text(was.nbytes)} written, others read ({size_text(one.read.nbytes)})"
            change = "do not use it: synced files change on their way; see the network and dmesg"
            lines.append(Finding("same bytes", where, Level.WRONG, text, change))
    return lines


def _rate(check: str, where: str, file: BigFile) -> Finding:
    rate = file.nbytes / max(file.seconds, 1e-9)
    text = f"{rate / 1e6:.0f} MB/s ({size_text(file.nbytes)})"
    if rate >= _SLOW_RATE or file.nbytes < _TELLING_BYTES:
        return Finding(check, where, Level.PASSES, text)
    text += f": weights of 1 GB take {1e9 / max(rate, 1):.0f} s"
    change = "see the network (iperf3), the server's disk, and nconnect"
    return Finding(check, where, Level.SLOW, text, change)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
