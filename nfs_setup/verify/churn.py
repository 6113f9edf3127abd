"""Files replaced in a loop and read at the same time, on all machines at once.

Each machine replaces its own file and reads those of the others in turn, so that readers and
writers meet at any moment. A content tells by itself whether it is whole.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from nfs_setup.verify.facts import Churned, Failure, MachineFacts, Probes
from nfs_setup.verify.files import code_of, digest, get, replace
from nfs_setup.verify.findings import Finding, Level, failed, pairs_text
from nfs_setup.verify.peers import Asked

_BODY_BYTES = 64 << 10
_DIGEST_BYTES = 64
_NUMBER_BYTES = 8
_MOST_ROUNDS = 2000


def seed(folder: str) -> None:
    """Write the first of one machine's files, before any machine reads."""
    replace(_file(folder), _content(0))


def churn(own: str, others: dict[str, str], seconds: float) -> Churned:
    """Replace one's own file and read the others' without a pause, once at least.

    Args:
        own: the folder of this machine.
        others: the folders of the other machines, by their names.
        seconds: how long.
    """
    counts = Churned(0, *(dict.fromkeys(others, 0) for _ in range(5)))
    newest = dict.fromkeys(others, -1)
    wrote = 0
    last = time.monotonic() + seconds
    while not wrote or (time.monotonic() < last and wrote < _MOST_ROUNDS):
        wrote += 1
        replace(_file(own), _content(wrote))
        for name, folder in others.items():
            try:
                number = _number(get(_file(folder)))
            except OSError as error:
                kind = {"ENOENT": counts.missing, "ESTALE": counts.stale}.get(code_of(error))
                if kind is None:
                    raise
                kind[name] += 1
                continue
            if number is None:
                counts.torn[name] += 1
                continue
            counts.reads[name] += 1
            counts.backwards[name] += number < newest[name]
            newest[name] = max(number, newest[name])
    return Churned(wrote, counts.reads, counts.torn, counts.missing, counts.stale, counts.backwards)


def _file(folder: str) -> str:
    return os.path.join(folder, "churn")


def _content(number: int) -> bytes:
    body = number.to_bytes(_NUMBER_BYTES, "big") + os.urandom(_BODY_BYTES)
    return digest(body).encode() + body


def _number(content: bytes) -> int | None:
    """Return the number of a content; None if it is not whole."""
    checksum, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    with contextlib.suppress(UnicodeDecodeError):
        if checksum.decode("ascii") == digest(body):
            return int.from_bytes(body[:_NUMBER_BYTES], "big")
    return None


PROBES: Probes = {"churn": churn}


def ask_churn(machines: Sequence[Asked], churn_s: float, pool: ThreadPoolExecutor) -> None:
    """Have all machines replace their own file and read the others'.

    Args:
        machines: those that have seeded theirs.
        churn_s: how long.
        pool: threads for all machines at once.
    """

    def churning(machine: Asked) -> None:
        own = machine.inside(machine.own)
        others = {m.name: machine.inside(m.own) for m in machines if m is not machine}
        machine.facts.churned = machine.ask(
            Churned, "churn", churn_s, own=own, others=others, seconds=churn_s
        )

    for _ in pool.map(churning, machines):
        pass


def judge_churn(machines: Sequence[MachineFacts]) -> list[Finding]:
    """Judge files that were replaced while they were read."""
    lines: list[Finding] = []
    good: list[tuple[str, int, int]] = []
    for reader in machines:
        churned = reader.churned
        if isinstance(churned, Failure):
            lines.append(failed("replaced while read", reader.name, churned))
        elif churned is not None:
            for writer in churned.reads:
                lines += _churned(f"{reader.name} ← {writer}", writer, churned, good)
    if good:
        reads, stale = sum(g[1] for g in good), sum(g[2] for g in good)
        text = f"{reads} reads, none torn, none missing"
        if stale:
            text += f"; {stale} times the old file was gone (ESTALE), which a new open mends"
        where = pairs_text([g[0] for g in good], len(good))
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
