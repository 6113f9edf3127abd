"""The workers of an experiment, as its file plans them: their names and their slots."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from dispatcher.experiment.fields import Section

LONGEST_NAME = 40
"""Bound for a worker's name: sockets are named after it, and their paths are short."""

TUNER = "tuner"
"""A peer of the head that is no worker: its keys and its socket are called so."""

NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._-]{{0,{LONGEST_NAME + 9}}}")

LOCAL = "local"
"""The worker of this machine."""

TAKEN = (LOCAL, TUNER)
"""Names that no other worker may have."""


class PlannedWorker(NamedTuple):
    """One worker.

    Attributes:
        name: that of the worker.
        slots: trials that it may run at once.
        part: its own section of the file: that of its machine, or that of the whole service, if it
            is the only worker.
        slots_given: whether the file or the platform says how many; else they are those of the
            experiment, and follow it when it is changed.
        elastic: whether it is there only while there is work for it.
        address: of this machine, at which it reaches the head by itself; None: it does not.
    """

    name: str
    slots: int
    part: Section
    slots_given: bool = True
    elastic: bool = False
    address: str | None = None


def distinct_names(wanted: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return a name for each worker: as wanted, but safe in file names and distinct.

    No name is one of ``taken``. The same list gives the same names.
    """
    names: list[str] = []
    for each in wanted:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", each).strip("-.")
        base = plain[:LONGEST_NAME] or "machine"
        name, number = base, 1
        while name in names or name in taken:
            number += 1
            name = f"{base}-{number}"
        names.append(name)
    return names
