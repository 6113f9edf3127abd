"""Seed after seed: the whole system with a scripted world around it, judged by its journal.

``make simulate SEEDS=10000 FIRST_SEED=0`` runs more of them, ``make simulate SEED=17`` tells
the story of one; see :mod:`tests.sim.__main__`.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from dispatcher.store import SqliteJournal
from dispatcher.store.verify import verify
from tests.sim.judging import judge
from tests.support.lengths import every
from tests.support.memory_journal import MemoryJournal
from tests.support.odds import case_of, with_lent_places, with_standstill, with_weight_files
from tests.support.world import World

SEEDS, BLOCK = 400, 20

#: Of these each is lived through with weights that are files.
FILED = 100

#: And of these in places that a scheduler lends.
LENT = 100

#: And of these with threads that stand still.
STANDING = 100


@pytest.mark.parametrize("first", every(2, range(0, SEEDS, BLOCK)))
def test_every_promise_holds_whatever_happens(first: int) -> None:
    for seed in range(first, first + BLOCK):
        judgement = judge(case_of(seed))
        assert not judgement.found, (
            f"seed {seed}: {judgement.found[0]}\nmake simulate SEED={seed} tells its story"
        )


@pytest.mark.parametrize("first", every(2, range(0, FILED, BLOCK)))
def test_children_have_their_parents_weights_whatever_happens(first: int) -> None:
    """Weights are files here; see :mod:`tests.support.weight_files`."""
    for seed in range(first, first + BLOCK):
        dice = random.Random(f"weights {seed}")
        judgement = judge(with_weight_files(case_of(seed), dice))
        assert not judgement.found, f"seed {seed}: {judgement.found[0]}\n{judgement.story}"


@pytest.mark.parametrize("first", every(2, range(0, STANDING, BLOCK)))
def test_each_stall_is_named_and_nothing_else(first: int) -> None:
    """Authors' threads stand still here, or compute for long; see
    :mod:`tests.support.standstill`."""
    for seed in range(first, first + BLOCK):
        dice = random.Random(f"standing {seed}")
        judgement = judge(with_standstill(case_of(seed), dice))
        assert not judgement.found, f"seed {seed}: {judgement.found[0]}\n{judgement.story}"


@pytest.mark.parametrize("first", every(2, range(0, LENT, BLOCK)))
def test_places_that_schedulers_lend_come_and_go(first: int) -> None:
    """They have ends, known ones and sudden ones; agents are asked to go, and started twice."""
    for seed in range(first, first + BLOCK):
        dice = random.Random(f"lent {seed}")
        judgement = judge(with_lent_places(case_of(seed), dice))
        assert not judgement.found, f"seed {seed}: {judgement.found[0]}\n{judgement.story}"


@pytest.mark.parametrize("seed", every(2, range(1000, 1008)))
def test_the_same_on_disk(seed: int, tmp_path: Path) -> None:
    """With a store that is folded again and again, and whose read models follow."""
    path = tmp_path / "journal.sqlite"
    case = case_of(seed)
    case = replace(case, odds=replace(case.odds, power_cuts=0))  # no pulling of this plug
    journal = SqliteJournal.open(path)
    try:
        judgement = judge(case, journal)
    finally:
        journal.close()
    assert not judgement.found, f"seed {seed}: {judgement.found}\n{judgement.story}"
    found = verify(path)
    assert found.ok, found


def test_a_seed_is_repeatable() -> None:
    stories = []
    for _ in range(2):
        world = World(case_of(7), MemoryJournal())
        world.run()
        stories.append(world.story())
    assert stories[0] == stories[1]
