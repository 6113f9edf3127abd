"""Facts that probes have measured: plain values with a name and a unit, as they travel.

:class:`Survey` holds those of all machines, for the judgements and for ``--json``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Failure:
    """A refusal of the system. ``code`` is its name of the error (``EROFS``), ``HANGS`` if
    no answer came in time, ``LOST`` if none will come, ``REFUSED`` if the question was refused;
    ``doing`` says at what."""

    doing: str
    code: str
    text: str


@dataclass(frozen=True)
class Surroundings:
    """The machine, and the share as its mount table and ``stat`` have it. ``found`` is
    ``folder``, ``other`` or ``nothing``; ``inodes`` 0: the file system does not count them."""

    host: str
    uid: int
    gid: int
    found: str
    owner: int
    group: int
    mode: int
    kind: str
    device: str
    point: str
    options: tuple[str, ...]
    exports: tuple[str, ...]
    total_bytes: int
    free_bytes: int
    inodes: int
    inodes_free: int


@dataclass(frozen=True)
class Begun:
    """The folder for all that follows, and one small file in it as the file system shows it.
    ``ahead_*_s``: between which bounds the share's clock is ahead of this machine's."""

    uid: int
    gid: int
    parent_set_gid: bool
    set_gid: bool
    parent_gid: int
    ahead_least_s: float
    ahead_most_s: float
    leftovers: int


@dataclass(frozen=True)
class Habits:
    """Habit → ``yes``, ``no``, or the system's name of the error."""

    found: dict[str, str]


@dataclass(frozen=True)
class Pace:
    """Small files of 4 KiB: write, fsync, rename; and the fsync in it. Medians and worst."""

    rounds: int
    publish_s: float
    publish_worst_s: float
    fsync_s: float
    fsync_worst_s: float


@dataclass(frozen=True)
class BigFile:
    """One big file written, synced, or read. ``seconds`` without making or digesting it."""

    nbytes: int
    seconds: float
    digest: str


@dataclass(frozen=True)
class Laid:
    """Success of a step that tells nothing else, and its seconds."""

    seconds: float


@dataclass(frozen=True)
class Published:
    """File below the writer's folder → digest of what it holds now; the owner as seen there."""

    digests: dict[str, str]
    uid: int
    gid: int


@dataclass(frozen=True)
class Seen:
    """The view that one reader had of what others published, by ``writer/file``.

    ``delays_s``: until the new content was there, negative if it never was. ``torn``: how
    often a file was neither the old nor the new one. ``errors``: errors met on the way.
    ``owners``: ``uid:gid`` by writer.
    """

    delays_s: dict[str, float]
    torn: dict[str, int]
    errors: dict[str, str]
    owners: dict[str, str]


@dataclass(frozen=True)
class Churned:
    """Files replaced and read at the same time. By writer: whole reads, torn ones, times when
    there was no file, when the handle was stale, and when an older one came back."""

    wrote: int
    reads: dict[str, int]
    torn: dict[str, int]
    missing: dict[str, int]
    stale: dict[str, int]
    backwards: dict[str, int]


@dataclass(frozen=True)
class Held:
    """Whether a lock was had, whether somebody else had it meanwhile, and the error if any."""

    had: bool
    refused: bool
    error: str


@dataclass(frozen=True)
class Moment:
    """Seconds since 1970 by a machine's own clock."""

    now_s: float


#: Probes by the names that requests have for them; each returns one of the facts above.
Probes = dict[str, Callable[..., Any]]


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
        """Whether the machine could write there."""
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
