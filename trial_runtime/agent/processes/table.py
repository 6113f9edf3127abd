"""The processes of this host, read from ``/proc``: their parents, sessions and usage.

Without psutil, which an agent's host may lack. Empty where there is no ``/proc``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Optional

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

#: How far up a process's ancestors are followed.
_GENERATIONS = 64


@dataclass(frozen=True)
class Row:
    """One process.

    ``session`` is the pid of its session's leader. ``cpu_s``: the CPU time that it and the children
    it has collected have spent.
    """

    pid: int
    parent: int
    session: int
    cpu_s: float
    rss_bytes: int


def row_of(pid: int) -> Optional[Row]:
    """The row of one process; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            content = file.read(2048)
    except OSError:
        return None
    # The name in parentheses may itself hold anything, parentheses included.
    fields = content.rpartition(b")")[2].split()
    spent = sum(map(int, fields[11:15]))
    return Row(pid, int(fields[1]), int(fields[3]), spent / _TICKS, int(fields[21]) * _PAGE)


def process_table() -> dict[int, Row]:
    """All processes, by number. Some 20 microseconds each."""
    table: dict[int, Row] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return table
    for name in names:
        if name.isdigit():
            row = row_of(int(name))
            if row is not None:
                table[row.pid] = row
    return table


def descends_from(pid: int, ancestor: int) -> Optional[bool]:
    """Whether a process is ``ancestor`` or one of its descendants; None if there is none."""
    first = row_of(pid)
    if first is None:
        return None
    row: Optional[Row] = first
    for _ in range(_GENERATIONS):
        if row is None:
            return False  # it ended meanwhile: its children have another parent now
        if row.pid == ancestor:
            return True
        if row.parent <= 1:
            return False
        row = row_of(row.parent)
    return False


def families(table: Mapping[int, Row], leaders: Iterable[int]) -> dict[int, list[Row]]:
    """The processes of each leader: its descendants, and those in its session.

    A child whose parent has ended has another parent, but is still in its session.
    """
    wanted = set(leaders)
    owner: dict[int, int] = {}
    for pid, row in table.items():
        trail = []
        at: Optional[Row] = row
        leader = 0
        for _ in range(_GENERATIONS):
            if at is None:
                break
            if at.pid in owner:
                leader = owner[at.pid]
                break
            trail.append(at.pid)
            if at.pid in wanted:
                leader = at.pid
                break
            at = table.get(at.parent)
        if not leader and row.session in wanted:
            owner[pid] = row.session
            continue
        for each in trail:
            owner[each] = leader
    members: dict[int, list[Row]] = {leader: [] for leader in wanted}
    for pid, row in table.items():
        leader = owner.get(pid, 0) or (row.session if row.session in wanted else 0)
        if leader:
            members[leader].append(row)
    return members


def proportional_bytes(pid: int) -> int:
    """The memory of a process with shared pages counted in part; 0 if the process is gone.

    Takes milliseconds, more than the table, and is right where a process was forked from one that
    had much loaded. All pages count where the kernel does not report this.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    row = row_of(pid)
    return row.rss_bytes if row is not None else 0
