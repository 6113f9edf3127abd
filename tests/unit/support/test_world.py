"""The simulated world keeps its own books right: what it tells the judge fits the journal."""

from __future__ import annotations

from dataclasses import replace

from dispatcher.core import events as e
from dispatcher.core.settings import QUARANTINE_MAX_S
from dispatcher.ports import JournalEntry
from tests.support.memory_journal import MemoryJournal
from tests.support.odds import case_of
from tests.support.world import QUIET_S, World


def test_harm_before_a_power_cut_comes_before_the_rows_written_after_it() -> None:
    """Row numbers that the cut took are given again. A harm that kept such a number seemed to come
    after the loss that it explains."""
    case = case_of(0)
    world = World(replace(case, odds=replace(case.odds, power_cuts=1)), MemoryJournal())
    with world._folder:
        entry = JournalEntry(world.now, e.HeadStarted(1), False)
        world.disk.append([entry], [], durable=True)
        world.harm("far")
        for _ in range(3):
            world.disk.append([entry], [], durable=False)
        world.harm("local")
        world.note("the power fails")
        world.disk.lose_power()
    assert world.disk.last == 1
    assert world.harms == [(1, "far"), (1, "local")]
    assert [row for row, _, _ in world.notes] == [1]


def test_a_worker_that_is_left_out_for_as_long_as_may_be_is_no_stuck_world() -> None:
    assert QUIET_S > QUARANTINE_MAX_S
