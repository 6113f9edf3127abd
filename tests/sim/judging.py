"""A case lived through and judged."""

from __future__ import annotations

from dataclasses import dataclass

from dispatcher.ports import Journal
from tests.support.memory_journal import MemoryJournal
from tests.support.odds import Case
from tests.support.world import World, came_to_its_end


@dataclass(frozen=True)
class Judgement:
    """What was found wrong, one sentence each, and the story it was found in."""

    case: Case
    found: tuple[str, ...]
    story: str


def judge(case: Case, journal: Journal | None = None) -> Judgement:
    """Live through a case and say what is wrong; errors of ours are found, not raised."""
    world = World(case, journal or MemoryJournal())
    found: list[str] = []
    try:
        state = world.run()
        found.extend(world.violations(state))
        found.extend(f"a peer was refused: {fault}" for fault in world.faults)
        if came_to_its_end(state) and (state.waits or state.waiters):
            found.append(f"over, and {state.waits} still wait")
    except Exception as error:  # noqa: BLE001 - whatever it is, the story is what helps
        found.append(f"{type(error).__name__}: {error}")
    return Judgement(case, tuple(found), world.story())
