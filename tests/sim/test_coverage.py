"""What the dice never throw is never tested: each key of ``Settings`` has a seed that sets it, each
kind of event one that meets it, and so has each kind of accident and each move of a trial."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, get_args

from dispatcher.core import events as e
from dispatcher.core.actions import StartAttempt
from dispatcher.core.arrows import ARROWS
from dispatcher.core.model import TrialState as S
from dispatcher.core.settings import Settings
from tests.support.memory_journal import MemoryJournal
from tests.support.odds import Odds, case_of
from tests.support.world import World

#: Those of ``make test``.
SEEDS = range(400)

#: Seeds that are lived through here; the others are, where their promises are judged.
#: Two are rare: a save that goes on in what was set aside, and a tuner that stands still.
LIVED = (*range(60), 69, 79)

#: In journals of older versions only.
OLD: frozenset[str] = frozenset()

#: Moves that so few seeds may miss; ``tests/unit/core/test_arrows.py`` has each of them.
RARE = frozenset(
    {
        # An attempt that was stopped with the experiment goes on with the next head, mostly by
        # the agent's own report that it is lost.
        (S.RUNNING, S.QUEUED),
        # The host of the dice reports the end of a wait before the answer of its request, and
        # cancels a request that was killed.
        *((S.BLOCKED, after) for after in (S.PARKED, S.HELD, S.QUEUED, S.DELIVERING)),
        (S.ENDED, S.DELIVERING),
    }
)


def _default(field: Any) -> Any:
    return field.default_factory() if field.default is MISSING else field.default


def test_each_key_of_the_settings_is_set_by_some_seed() -> None:
    never = {field.name for field in fields(Settings)}
    for seed in SEEDS:
        settings = case_of(seed).settings
        for field in fields(Settings):
            required = field.default is MISSING and field.default_factory is MISSING
            if required or getattr(settings, field.name) != _default(field):
                never.discard(field.name)
    assert not never, f"no seed sets {sorted(never)}: add dice for it in tests/support/odds.py"


def test_each_kind_of_odds_is_rolled_by_some_seed() -> None:
    never = {field.name for field in fields(Odds)}
    for seed in SEEDS:
        odds = case_of(seed).odds
        never -= {field.name for field in fields(Odds) if getattr(odds, field.name)}
    assert not never, f"no seed has {sorted(never)}"


def test_each_kind_of_event_accident_and_move_is_met_by_some_seed() -> None:
    met: set[str] = set()
    moves: set[tuple[S | None, S]] = set()
    told: set[str] = set()
    for seed in LIVED:
        world = World(case_of(seed), MemoryJournal())
        world.run()
        met |= world.met
        moves |= {(move.before, move.after) for move in world.moves}
        told.update(text for _, _, text in world.notes)
        told.update(type(order).__name__ for _, _, order in world.orders)
        starts = [order for _, _, order in world.orders if isinstance(order, StartAttempt)]
        told.update(f"{len(start.devices)} devices" for start in starts)
        told.update("part of a device" for start in starts if start.device_share)
    stories = "\n".join(told)
    for kind in ACCIDENTS:
        assert kind in stories, f"no seed knows {kind!r}"
    never = {each.__name__ for each in get_args(e.Event)} - met - OLD
    assert not never, f"no seed meets {sorted(never)}: see tests/support/world.py"
    unmoved = {arrow for arrows in ARROWS.values() for arrow in arrows} - moves - RARE
    assert not unmoved, f"no seed has a trial that moves so: {unmoved}"


ACCIDENTS = (
    "crashes",  # the tuner host
    "cut off",
    "connection",
    "stands still",
    "is killed before",
    "the disk refuses",
    "power",
    "wall clock",
    "the agent of local is",
    "GrantRemoval",
    "GrantVersions",
    "AnswerOffer",
    "ails",  # a device
    "3 devices",
    "part of a device",
    "in trouble",  # a host
    "is taken back for",  # a place
    "stall, certain",
    "stands still in a wait that is not wait_for",
    "the tuner stands still",
    "goes on in what was set aside",  # a save
    "has its parent's weights",
)
