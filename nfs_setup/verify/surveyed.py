"""Everything that was measured, for those who judge it and for ``--json``."""

from __future__ import annotations

from dataclasses import dataclass, field

from nfs_setup.verify.facts import (
    Begun,
    BigFile,
    Churned,
    Failure,
    Habits,
    Held,
    Pace,
    Published,
    Seen,
    Surroundings,
)


@dataclass(frozen=True)
class Clock:
    """Lead of a machine's clock over that of the machine that asked it."""

    ahead_least_s: float
    ahead_most_s: float


@dataclass
class MachineFacts:
    """One machine, alone. None: not asked, since something before it went wrong. ``again``:
    a further process of a machine that was asked already."""

    name: str
    path: str
    again: bool = False
    surroundings: Surroundings | Failure | None = None
    begun: Begun | Failure | None = None
    clock: Clock | None = None
    habits: Habits | Failure | None = None
    pace: Pace | Failure | None = None
    written: BigFile | Failure | None = None
    published: Published | Failure | None = None
    seen: Seen | Failure | None = None
    churned: Churned | Failure | None = None

    @property
    def uses_it(self) -> bool:
        """Whether it could write there."""
        return isinstance(self.begun, Begun)


@dataclass(frozen=True)
class Reread:
    """A big file of ``writer``, read by ``reader``; the same machine where there is one only."""

    writer: str
    reader: str
    read: BigFile | Failure


@dataclass(frozen=True)
class Locked:
    """``holder`` held a lock while ``other`` tried to get it."""

    holder: str
    other: str
    held: Held | Failure
    tried: Held | Failure


@dataclass
class Survey:
    """All machines, and what was seen between them. ``one_host``: the machines are processes
    of one host, so nothing was seen of another's cache."""

    machines: list[MachineFacts]
    one_host: bool
    watched_s: float  # how long readers looked for what was published
    rereads: list[Reread] = field(default_factory=list)
    locks: list[Locked] = field(default_factory=list)
    left_behind: Failure | None = None
