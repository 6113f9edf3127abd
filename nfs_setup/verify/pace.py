"""Speed of a share: what a trial pays for its weights. Slow costs time and no results."""

from __future__ import annotations

import contextlib
import hashlib
import os
import statistics
import time
from collections.abc import Sequence

from nfs_setup.verify.facts import (
    BigFile,
    Failure,
    MachineFacts,
    Pace,
    Probes,
    Reread,
    Surroundings,
    Survey,
)
from nfs_setup.verify.files import replace
from nfs_setup.verify.findings import Finding, Level, failed
from nfs_setup.verify.peers import Asked, Say
from nfs_setup.verify.room import size_text

_CHUNK_BYTES = 1 << 20
_SMALL_BYTES = 4096


def publish_small(folder: str, rounds: int, limit_s: float) -> Pace:
    """Publish small files, one after another.

    Args:
        folder: the folder of this machine.
        rounds: how many; fewer where time is up, one at least.
        limit_s: seconds after which no further one is begun.
    """
    path = os.path.join(folder, "small")
    content = os.urandom(_SMALL_BYTES)
    whole: list[float] = []
    syncs: list[float] = []
    last = time.monotonic() + limit_s
    while len(whole) < rounds and (not whole or time.monotonic() < last):
        began = time.perf_counter()
        syncs.append(replace(path, content))
        whole.append(time.perf_counter() - began)
    return Pace(
        rounds=len(whole),
        publish_s=statistics.median(whole),
        publish_worst_s=max(whole),
        fsync_s=statistics.median(syncs),
        fsync_worst_s=max(syncs),
    )


def write_big(path: str, nbytes: int, limit_s: float) -> BigFile:
    """Write and sync one file that cannot be compressed.

    Args:
        path: where nothing is yet.
        nbytes: its size; less where time is up.
        limit_s: seconds of writing.
    """
    total, spent = hashlib.blake2b(digest_size=32), 0.0
    written = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o660)
    try:
        while written < nbytes and spent < limit_s:
            chunk = memoryview(os.urandom(min(_CHUNK_BYTES, nbytes - written)))
            total.update(chunk)
            written += len(chunk)
            began = time.perf_counter()
            while chunk:
                chunk = chunk[os.write(descriptor, chunk) :]
            spent += time.perf_counter() - began
        began = time.perf_counter()
        os.fsync(descriptor)
        spent += time.perf_counter() - began
    finally:
        os.close(descriptor)
    return BigFile(written, spent, total.hexdigest())


def read_big(path: str, limit_s: float) -> BigFile:
    """Read a big file, past this machine's own cache as far as that can be asked for."""
    total, spent, nbytes = hashlib.blake2b(digest_size=32), 0.0, 0
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        with contextlib.suppress(OSError, AttributeError):  # not on every system
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        while spent < limit_s:
            began = time.perf_counter()
            chunk = os.read(descriptor, _CHUNK_BYTES)
            spent += time.perf_counter() - began
            if not chunk:
                break
            total.update(chunk)
            nbytes += len(chunk)
    finally:
        os.close(descriptor)
    return BigFile(nbytes, spent, total.hexdigest())


PROBES: Probes = {"pace": publish_small, "write big": write_big, "read big": read_big}


def ask_small(machines: Sequence[Asked], rounds: int, limit_s: float, say: Say) -> None:
    """Have small files published on one machine after another: each has the share for itself.

    Args:
        machines: asked in this order.
        rounds: how many files each.
        limit_s: seconds after which a machine begins no further one.
        say: gets a line for each machine.
    """
    for machine in machines:
        say(f"small files, {machine.name}")
        folder = machine.inside(machine.own)
        machine.facts.pace = machine.ask(
            Pace, "pace", folder=folder, rounds=rounds, limit_s=limit_s
        )


_BIG_S = 60.0

#: Of the room that is free, the part that a big file may take.
_PART = 4


def ask_big(machines: Sequence[Asked], nbytes: int, say: Say) -> list[Reread]:
    """Have a big file written on one machine after another; the next one reads it.

    Args:
        machines: each has the share for itself.
        nbytes: the size of the file, where there is enough room.
        say: gets a line for each machine.
    """
    rereads = []
    for number, writer in enumerate(machines):
        if writer.facts.again:
            continue
        reader = machines[(number + 1) % len(machines)]
        say(f"a big file, {writer.name}")
        size = min(nbytes, _free_bytes(writer) // _PART)
        path = writer.inside(writer.own, "big")
        written = writer.ask(BigFile, "write big", _BIG_S, path=path, nbytes=size, limit_s=_BIG_S)
        writer.facts.written = written
        if isinstance(written, BigFile):
            path = reader.inside(writer.own, "big")
            read = reader.ask(BigFile, "read big", _BIG_S, path=path, limit_s=_BIG_S)
            rereads.append(Reread(writer.name, reader.name, read))
    return rereads


def _free_bytes(machine: Asked) -> int:
    around = machine.facts.surroundings
    return around.free_bytes if isinstance(around, Surroundings) else 0


#: A disk that turns has its fsync done in some 10 ms, a network adds one; beyond this
#: each published trial waits noticeably.
_SLOW_FSYNC_S = 0.1
_SLOW_PUBLISH_S = 0.25

#: Bytes a second. 100 Mbit/s has 12 MB/s: whatever is below has a fault or a neighbour.
_SLOW_RATE = 10e6

#: Shorter files say nothing of a rate.
_TELLING_BYTES = 4 << 20


def judge_pace(machine: MachineFacts) -> list[Finding]:
    """Judge small files, and the writing of a big one."""
    lines = []
    pace = machine.pace
    if isinstance(pace, Failure):
        lines.append(failed("small files", machine.name, pace))
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
        lines.append(failed("big file", machine.name, machine.written))
    elif machine.written is not None:
        lines.append(_rate("big file, written", machine.name, machine.written))
    return lines


def judge_rereads(survey: Survey) -> list[Finding]:
    """Judge the reading of big files, and whether all came back as they were written."""
    lines = []
    written = {m.name: m.written for m in survey.machines}
    for one in survey.rereads:
        where = one.reader if one.reader == one.writer else f"{one.reader} ← {one.writer}"
        was = written.get(one.writer)
        if not isinstance(was, BigFile):
            continue
        if isinstance(one.read, Failure):
            lines.append(failed("big file, read", where, one.read))
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
