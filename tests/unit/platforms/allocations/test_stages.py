"""Every stage and every sight of an allocation, through the one that judges them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.platforms.agents.process import Loss
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.allocations.held import UNSEEN_S, Held
from dispatcher.platforms.allocations.stages import CONDEMNED, UPSHOTS, Sight, Stage

NOW = 1000.0


def _ordered(held: Held) -> None:
    held.begin(NOW, NOW)
    held.tries()
    held.taken(NOW)


def _seen(held: Held, state: AllocationState | None, now: float = NOW) -> Loss | None:
    gone = Gone.PREEMPTED if state is AllocationState.ENDED else None
    name = held.name or "lab-q-1-1"
    return held.seen(None if state is None else Allocation(name, state, gone=gone), now, now)


def _drafted(held: Held) -> None:
    held.begin(NOW, NOW)
    held.tries()
    held.refused(NOW, hopeless=False, certain=False)


def _listed(held: Held) -> None:
    _ordered(held)
    _seen(held, AllocationState.WAITING)


def _running(held: Held) -> None:
    _ordered(held)
    _seen(held, AllocationState.RUNNING)


def _recalled(held: Held) -> None:
    _ordered(held)
    held.condemn(0.0, NOW)


def _leaving(held: Held) -> None:
    _running(held)
    held.condemn(0.0, NOW)


WAYS: dict[Stage, Callable[[Held], None]] = {
    Stage.GONE: lambda held: None,
    Stage.DRAFTED: _drafted,
    Stage.ORDERED: _ordered,
    Stage.LISTED: _listed,
    Stage.RUNNING: _running,
    Stage.RECALLED: _recalled,
    Stage.LEAVING: _leaving,
}
GONE, LISTED, RUNNING, LEAVING = Stage.GONE, Stage.LISTED, Stage.RUNNING, Stage.LEAVING
LOST, BACK, NONE = "does not know", "taken back", ""
ENDED = "was preempted"

#: Where each leads, and the loss that it is: in the order of ``Sight``.
LEADS: dict[Stage, tuple[tuple[Stage, str], ...]] = {
    Stage.GONE: ((GONE, NONE),) * 7,
    Stage.DRAFTED: (
        (Stage.DRAFTED, NONE),
        (Stage.DRAFTED, NONE),
        (LISTED, NONE),
        (LISTED, NONE),
        (RUNNING, NONE),
        (GONE, ENDED),
        (LISTED, NONE),
    ),
    Stage.ORDERED: (
        (Stage.ORDERED, NONE),
        (GONE, LOST),
        (LISTED, NONE),
        (LISTED, NONE),
        (RUNNING, NONE),
        (GONE, ENDED),
        (LISTED, NONE),
    ),
    Stage.LISTED: (
        (GONE, LOST),
        (GONE, LOST),
        (LISTED, NONE),
        (LISTED, NONE),
        (RUNNING, NONE),
        (GONE, ENDED),
        (LISTED, NONE),
    ),
    Stage.RUNNING: (
        (GONE, LOST),
        (GONE, LOST),
        (LEAVING, BACK),
        (LEAVING, BACK),
        (RUNNING, NONE),
        (GONE, ENDED),
        (RUNNING, NONE),
    ),
    Stage.RECALLED: (
        (Stage.RECALLED, NONE),
        (GONE, NONE),
        (LEAVING, NONE),
        (LEAVING, NONE),
        (LEAVING, NONE),
        (GONE, NONE),
        (LEAVING, NONE),
    ),
    Stage.LEAVING: (
        (GONE, NONE),
        (GONE, NONE),
        (LEAVING, NONE),
        (LEAVING, NONE),
        (LEAVING, NONE),
        (GONE, NONE),
        (LEAVING, NONE),
    ),
}
STATES = {
    Sight.WAITING: AllocationState.WAITING,
    Sight.STARTING: AllocationState.STARTING,
    Sight.RUNNING: AllocationState.RUNNING,
    Sight.ENDED: AllocationState.ENDED,
    Sight.UNKNOWN: AllocationState.UNKNOWN,
}


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held("q-1", tmp_path, "lab", float("inf"), NOW)


def test_the_table_is_whole() -> None:
    assert set(UPSHOTS) == set(CONDEMNED) == set(WAYS) == set(LEADS) == set(Stage)
    assert all(set(row) == set(Sight) for row in UPSHOTS.values())


@pytest.mark.parametrize("sight", Sight)
@pytest.mark.parametrize("stage", Stage)
def test_what_is_seen_leads_there(held: Held, stage: Stage, sight: Sight) -> None:
    WAYS[stage](held)
    assert held.stage is stage
    now = NOW + UNSEEN_S if sight is Sight.MISSING else NOW
    loss = _seen(held, STATES.get(sight), now)
    after, text = LEADS[stage][list(Sight).index(sight)]
    assert held.stage is after
    assert (loss is not None) is bool(text)
    assert loss is None or text in loss.reason
    assert held.is_there is (after is not GONE)


@pytest.mark.parametrize("stage", Stage)
def test_one_that_is_to_end_is_cancelled_until_it_is_gone(held: Held, stage: Stage) -> None:
    """One that was never listed is looked for first. Mutation: gone since it is not listed yet."""
    WAYS[stage](held)
    held.condemn(3.0, NOW)
    assert held.stage is CONDEMNED[stage]
    if stage is Stage.GONE:
        return
    assert held.hears(held.ticket, NOW) is False
    assert not held.needs_order
    assert held.grace_s == (3.0 if held.stage is LEAVING else None)
    if held.stage is Stage.RECALLED:
        _seen(held, None)
        assert held.grace_s == 3.0
        _seen(held, None, NOW + UNSEEN_S - 1.0)
        assert held.is_there, "its list may lag"
    _seen(held, None, NOW + UNSEEN_S)
    assert not held.is_there


def test_an_order_that_nobody_was_asked_for_is_withdrawn(held: Held) -> None:
    """Mutation: it is looked for, for as long as lists may lag."""
    held.begin(NOW, NOW)
    held.condemn(0.0, NOW)
    assert held.stage is GONE


def test_a_refusal_is_certain_of_what_was_asked_for_once(held: Held) -> None:
    """Mutation: the one before, which may have been taken, is forgotten for it."""
    _drafted(held)
    held.begin(NOW, NOW)
    held.tries()
    held.refused(NOW, hopeless=True, certain=True)
    assert held.stage is Stage.DRAFTED
    _seen(held, AllocationState.WAITING)
    assert held.stage is LISTED
