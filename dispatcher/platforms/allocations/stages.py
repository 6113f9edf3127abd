"""The life of a worker's newest allocation as a table: its stage, what is seen of it, what follows.

Wishes are no part of it but for one: an allocation that is to end is *recalled* while nobody has
seen it, and *leaves* from then on. Its agent is not believed any more, and no other one is ordered
before it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone


class Stage(StrEnum):
    """How far an allocation is, as this head knows it."""

    GONE = "gone"  # or there was none
    DRAFTED = "drafted"  # on record; nobody knows whether the scheduler has its order
    ORDERED = "ordered"  # the scheduler has the order, and has not listed it
    LISTED = "listed"  # in the queue, or being prepared
    RUNNING = "running"
    RECALLED = "recalled"  # to end, never listed: the list may lag behind its order
    LEAVING = "leaving"  # to end, and was listed


class Sight(StrEnum):
    """The state of an allocation as seen when the scheduler is asked."""

    LATE = "late"  # not listed, which says nothing so soon after its order
    MISSING = "missing"
    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"  # listed, with a word that nobody knows


class Upshot(StrEnum):
    """The consequence of a sight at a stage."""

    STAY = "stay"
    LAG = "lag"  # it waits until it is listed
    LIST = "list"  # its order was taken; no more is known
    WAIT = "wait"  # in its queue, up to the limit
    PREPARE = "prepare"
    RUN = "run"
    TAKE_BACK = "take back"  # it would begin anew under its ticket: lost without blame, and
    # recalled, unless its scheduler lends places anew by itself
    VANISH = "vanish"  # lost: the scheduler does not know it any more
    END = "end"  # lost, by the way it ended
    FENCE = "fence"  # given up on when its agent must have ended by itself, for want of a head
    APPEAR = "appear"  # one that is recalled was listed late
    FREE = "free"  # gone, as was wanted


def _row(*upshots: Upshot) -> Mapping[Sight, Upshot]:
    return MappingProxyType(dict(zip(Sight, upshots, strict=True)))


_, _LAG, _LIST = Upshot.STAY, Upshot.LAG, Upshot.LIST
_WAIT, _PREPARE, _RUN = Upshot.WAIT, Upshot.PREPARE, Upshot.RUN
_BACK, _VANISH, _END = Upshot.TAKE_BACK, Upshot.VANISH, Upshot.END
_FENCE, _APPEAR, _FREE = Upshot.FENCE, Upshot.APPEAR, Upshot.FREE

# fmt: off
#: What follows from what is seen, for each stage.
UPSHOTS: Mapping[Stage, Mapping[Sight, Upshot]] = MappingProxyType({
    #                    late     missing  waiting  starting  running  ended  unknown
    Stage.GONE:     _row(_,       _,       _,       _,        _,       _,     _),
    Stage.DRAFTED:  _row(_,       _,       _WAIT,   _PREPARE, _RUN,    _END,  _LIST),
    Stage.ORDERED:  _row(_LAG,    _VANISH, _WAIT,   _PREPARE, _RUN,    _END,  _LIST),
    Stage.LISTED:   _row(_VANISH, _VANISH, _WAIT,   _PREPARE, _RUN,    _END,  _),
    Stage.RUNNING:  _row(_VANISH, _VANISH, _BACK,   _BACK,    _RUN,    _END,  _),
    Stage.RECALLED: _row(_,       _FREE,   _APPEAR, _APPEAR,  _APPEAR, _FREE, _APPEAR),
    Stage.LEAVING:  _row(_FREE,   _FREE,   _FENCE,  _FENCE,   _FENCE,  _FREE, _FENCE),
})

#: Where one comes to that is to end.
CONDEMNED: Mapping[Stage, Stage] = MappingProxyType({
    Stage.GONE:     Stage.GONE,
    Stage.DRAFTED:  Stage.RECALLED,
    Stage.ORDERED:  Stage.RECALLED,
    Stage.LISTED:   Stage.LEAVING,
    Stage.RUNNING:  Stage.LEAVING,
    Stage.RECALLED: Stage.RECALLED,
    Stage.LEAVING:  Stage.LEAVING,
})
# fmt: on

_SIGHTS = {
    AllocationState.WAITING: Sight.WAITING,
    AllocationState.STARTING: Sight.STARTING,
    AllocationState.RUNNING: Sight.RUNNING,
    AllocationState.ENDED: Sight.ENDED,
}


def sight_of(allocation: Allocation | None, *, lags: bool) -> Sight:
    """Return how an allocation is seen.

    Args:
        allocation: as listed; None: it is not.
        lags: whether its order is so recent that the list may lack it.
    """
    if allocation is None:
        return Sight.LATE if lags else Sight.MISSING
    return _SIGHTS.get(allocation.state, Sight.UNKNOWN)


#: What became of an allocation that has ended, in words.
HOW = {
    Gone.FINISHED: "its agent has left",
    Gone.PREEMPTED: "its allocation was preempted",
    Gone.EVICTED: "its allocation was evicted",
    Gone.NODE_LOST: "the node of its allocation is lost",
    Gone.OUT_OF_MEMORY: "its allocation ran out of memory",
    Gone.WALL_TIME: "its allocation has reached its wall time",
    Gone.CANCELLED: "somebody has cancelled its allocation",
    Gone.FAILED: "its allocation has failed",
    Gone.NEVER: "no place for it can ever be had",
    None: "its allocation has ended",
}
