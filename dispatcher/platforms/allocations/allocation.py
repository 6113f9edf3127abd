"""An allocation as its scheduler speaks of it, and what a platform of allocations implements."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2s
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from trial_runtime.agent.config import AgentConfig

#: Longest time that an allocation may wait or last (seconds): hundreds of years.
LONGEST_S = 1e10

#: Longest name of an allocation: DNS-1123, with room for what a controller appends.
LONGEST_NAME = 52


class AllocationState(StrEnum):
    """The states of an allocation. Words of a scheduler that nobody knows are ``UNKNOWN``, which
    keeps the last known state: they are never a failure."""

    WAITING = "waiting"  # in the queue
    STARTING = "starting"  # it has its place, which is being prepared: images, prologues
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"


class Gone(StrEnum):
    """How an allocation ended."""

    FINISHED = "finished"  # its agent left by itself
    PREEMPTED = "preempted"
    EVICTED = "evicted"
    NODE_LOST = "node lost"
    OUT_OF_MEMORY = "out of memory"
    WALL_TIME = "wall time"
    CANCELLED = "cancelled"  # by somebody else than us
    FAILED = "failed"
    NEVER = "never"  # it can never have what it asks for


#: Ends for which neither the agent nor its machine is to blame: the place was taken back.
TAKEN_BACK = frozenset(
    {Gone.PREEMPTED, Gone.EVICTED, Gone.NODE_LOST, Gone.WALL_TIME, Gone.CANCELLED}
)


_STATES = {str(each): each for each in AllocationState}
_GONE = {str(each): each for each in Gone}


@dataclass(frozen=True, slots=True)
class Allocation:
    """One allocation, as its scheduler describes its newest incarnation.

    Times are durations by the scheduler's own clock, since clocks may differ by hours.

    Attributes:
        name: as in its order.
        state: now.
        reason: why it waits, or how it ended, in the scheduler's words.
        waiting_s: seconds in the queue so far.
        ends_in_s: seconds until its wall time; None: there is none, or it is not known.
        gone: how it ended, with ``ENDED``; None: not known.
        place: its node, for people.
        renewed: whether its scheduler, where it takes the place back, lends another one by itself
            under the same ticket: to wait after it ran is no end of this allocation.
    """

    name: str
    state: AllocationState
    reason: str = ""
    waiting_s: float = 0.0
    ends_in_s: float | None = None
    gone: Gone | None = None
    place: str = ""
    renewed: bool = False

    def __post_init__(self) -> None:
        """Refuse what no head can work with, in the line that made it; words are taken for what
        they name. Raises ``TypeError``."""
        state, gone = self.state, self.gone
        texts = (self.name, state, self.reason, gone or "", self.place)
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"an allocation with something else than texts: {texts!r:.300}")
        ends_in_s = 0.0 if self.ends_in_s in (None, math.inf) else self.ends_in_s
        for time in (self.waiting_s, ends_in_s):
            if not (isinstance(time, (int, float)) and abs(time) <= LONGEST_S):
                raise TypeError(f"an allocation with something else than seconds: {time!r:.300}")
        if type(state) is not AllocationState:  # most are: a look makes a thousand
            object.__setattr__(self, "state", _STATES.get(state, AllocationState.UNKNOWN))
        if gone is not None and type(gone) is not Gone:
            object.__setattr__(self, "gone", _GONE.get(gone))


@dataclass(frozen=True, slots=True)
class AllocationOrder:
    """The order of one allocation, in which one agent runs.

    Attributes:
        name: unique, and the same if the order is repeated; DNS-1123, at most 52 characters.
        config: the agent's configuration. It holds keys: into a file that only its owner can read,
            or a secret of the platform, and never into arguments.
        arguments: of Python, to start the agent; the path of the configuration's file comes last.
        environment: variables of the agent, with secrets in their values: not into a file, or an
            object, that others can read.
        log: the file for its output, where it sees the experiment's folder.
        nodes: how many of them, on each of which the same is started. They get their ranks by
            ``BEQUEATH_RANK`` in their environment, or else by their order of arrival in the
            ``experiment_folder`` of the configuration, which all of them see.
    """

    name: str
    config: AgentConfig
    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: str = ""
    nodes: int = 1


class Allocator(ABC):
    """One service of an experiment at its scheduler. Thread: one of its own.

    Methods may block, and raise ``BackendError``: after a
    :class:`~dispatcher.errors.PassingBackendError` they are called again soon, after another one
    in a minute or more, since somebody has to change something first. What runs goes on meanwhile,
    and what concerns one allocation stops no other.

    Attributes:
        look_every_s: seconds between two looks, a tenth at least; one look is for all workers
            together.
        most_at_once: so many orders one :meth:`submit_many` takes; 1: each is given by
            :meth:`submit`.
    """

    look_every_s: float
    most_at_once: int = 1

    @abstractmethod
    def submit(self, order: AllocationOrder) -> None:
        """Ask for an allocation. The same name is never asked for twice: if it exists already,
        that is success, since a head may have died before it could note its own order. After a
        :class:`~dispatcher.errors.PermanentBackendError` it was certainly not taken; after anything
        else it may have been, and the same name is asked for again."""
        ...

    def submit_many(self, orders: Sequence[AllocationOrder]) -> None:
        """Ask for several allocations in one request. It is taken as a whole, or not at all: an
        error is about each of them, and means what it means for one. To be written by those
        whose :attr:`most_at_once` is more than 1."""
        raise NotImplementedError

    @abstractmethod
    def look(self) -> Sequence[Allocation]:
        """All allocations of this service that are our own user's, ended ones for as long as the
        scheduler knows them. One request, never one for each. What nobody owns is cancelled."""
        ...

    def tell(self, name: str, config: AgentConfig) -> None:  # noqa: B027 - not all can
        """Hand an allocation the configuration with the address of the head that leads now, if its
        file can be written anew, and is still there. Does nothing unless overridden."""

    @abstractmethod
    def cancel(self, names: Sequence[str], grace_s: float) -> None:
        """End allocations, by force after a grace; one that is not there is no error. It is
        repeated until they are listed as ended, or no more; after a failure with one name each."""
        ...

    def answer(self, order: AllocationOrder) -> str:
        """Return what a probe has written so far, see
        :mod:`dispatcher.platforms.allocations.probe`."""
        return ""

    def clear(self) -> None:  # noqa: B027 - not all lay something down
        """Remove what was laid down for all allocations of this service together: none is left, and
        its head ends. Another head of the experiment lays it down anew. Does nothing unless
        overridden."""

    def close(self) -> None:  # noqa: B027 - not all hold something
        """Release what this object holds; allocations go on. Does nothing unless overridden."""


class Bounds(NamedTuple):
    """How many allocations a service holds, and for how long.

    ``least``: so many at all times; ``most``: as many as it has workers. One more than the least is
    given back when nothing ran there for ``idle_s``. One that has waited for ``limit_s`` is given
    up as one that will never be had.
    """

    least: int
    most: int
    idle_s: float = math.inf
    limit_s: float = math.inf


def service_label(experiment: str, first_worker: str) -> str:
    """The beginning of the names of all allocations of one service of an experiment.

    Args:
        experiment: its id.
        first_worker: of the service; names of workers are unique in an experiment.
    """
    digest = blake2s(f"{experiment}\0{first_worker}".encode(), digest_size=3).hexdigest()
    return f"{_plain(experiment, 10) or 'bequeath'}-{digest}"


def allocation_name(label: str, worker: str, incarnation: int) -> str:
    """The name of one incarnation of a worker.

    Args:
        label: of the service.
        worker: its name.
        incarnation: counted from 1.
    """
    plain = _plain(worker, 16)
    if plain != worker:
        digest = blake2s(worker.encode(), digest_size=5).hexdigest()
        plain = f"{plain}-{digest}" if plain else digest
    return f"{label}-{plain}-{incarnation}"


def _plain(text: str, most: int) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:most].strip("-")
