"""The list of ``squeue``: the command that asks for it, and its text read. Pure.

Columns have fixed widths, which count bytes: no separator could be trusted, since names of jobs
hold anything. The text is the same from 20.11 to 24.11; that of ``--json`` is another one in each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

#: The columns and their widths. An identifier of a job is ``123``, of a task of an array ``123_4``.
COLUMNS = (
    ("JobArrayID", 32),
    ("Name", 64),
    ("State", 24),
    ("PendingTime", 16),
    ("TimeLeft", 24),
    ("NodeList", 64),
    ("Reason", 256),
)

#: Words for a reason, or a node, that is none.
_NOTHING = frozenset({"None", "(null)", "N/A"})

_TIME = re.compile(r"(?:(?:(?P<d>\d+)-)?(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d+)")


class Job(NamedTuple):
    """One job as listed.

    Attributes:
        id: that ``scancel`` takes.
        name: as in its order.
        state: a word of Slurm.
        waiting_s: seconds in the queue, by the clock of the machine where it was asked for.
        left_s: seconds until its time limit; None: there is none, or it is over.
        nodes: as Slurm abbreviates their names.
        reason: why it is in this state; empty for none.
    """

    id: str
    name: str
    state: str
    waiting_s: float = 0.0
    left_s: float | None = None
    nodes: str = ""
    reason: str = ""


def list_command(user: str) -> list[str]:
    """The command that lists the jobs of one user, named or by number, those that have ended
    included, for as long as the controller knows them."""
    columns = ",".join(f"{column}:{width}" for column, width in COLUMNS)
    return ["squeue", "--noheader", "--array", "--states=all", f"--user={user}", "-O", columns]


def read_list(text: bytes, prefix: str) -> Iterator[Job]:
    """Read the jobs whose names begin with a text; those of others are not looked at further.

    Args:
        text: the output of :func:`list_command`.
        prefix: plain ASCII.
    """
    for line in text.splitlines():
        fields = _fields(line)
        if not fields[1].startswith(prefix):
            continue
        number, name, state, waiting, left, nodes, reason = fields
        yield Job(
            number,
            name,
            state,
            float(waiting) if waiting.isdecimal() else 0.0,
            seconds_of(left),
            "" if nodes in _NOTHING else nodes,
            "" if reason in _NOTHING else reason,
        )


def seconds_of(text: str) -> float | None:
    """The seconds of ``[[D-]HH:]MM:SS``; None for ``UNLIMITED``, ``NOT_SET`` and ``INVALID``, which
    stands there once the limit is over."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.group("d", "h", "m", "s"))
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _fields(line: bytes) -> list[str]:
    fields, begin = [], 0
    for _, width in COLUMNS:
        fields.append(line[begin : begin + width].decode(errors="replace").strip())
        begin += width
    return fields
