"""Seed after seed: the whole system with a scripted world around it, judged by its journal.

``SIM_SEEDS`` seeds from ``SIM_FIRST_SEED`` on (``make simulate``). A seed that fails prints
its number and its story; ``SIM_SEEDS=1 SIM_FIRST_SEED=<n>`` repeats it exactly.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from dispatcher.core.model import Phase
from dispatcher.core.settings import Settings, StallPolicy, TunerErrorPolicy
from dispatcher.store import SqliteJournal
from tests.support.checker import check_store
from tests.support.memory_journal import MemoryJournal
from tests.support.world import Odds, World

FIRST = int(os.environ.get("SIM_FIRST_SEED", "0"))
COUNT = int(os.environ.get("SIM_SEEDS", "50"))


def build(seed: int, journal: object) -> World:
    """The experiment that a seed stands for."""
    dice = random.Random(f"settings {seed}")
    slots = dice.choice((1, 2, 2, 3, 5))
    settings = Settings(
        slots=slots,
        lookahead=dice.choice((1, 2, 4, 8)),
        max_trials=dice.choice((5, 20, 40)),
        on_tuner_error=dice.choice((TunerErrorPolicy.CONTINUE, TunerErrorPolicy.RETRY)),
        on_stall=dice.choice(list(StallPolicy)),
        stall_timeout_s=30.0,
        trial_retries=dice.choice((0, 1, 2)),
        substitute_result=dice.choice((None, None, "0")),
        silent_is_failure=dice.random() < 0.2,
    )
    calm = dice.random() < 0.2
    odds = Odds(
        trial_fails=0.0 if calm else dice.choice((0.1, 0.4)),
        host_crashes=0 if calm else 2,
        agent_accidents=0 if calm else 3,
        head_crashes=0 if calm else 2,
        user_acts=0 if calm else 6,
        stops=0 if calm else 1,
    )
    workers = {"local": slots} if dice.random() < 0.5 else {"local/a": slots, "local/b": 2}
    return World(seed, journal, settings, odds, workers)  # type: ignore[arg-type]


def judge(world: World) -> None:
    try:
        state = world.run()
        violations = world.violations(state)
    except BaseException as error:
        error.add_note(f"seed {world.seed}\n{world.story()}")
        raise
    assert not violations, "\n".join([f"seed {world.seed}", *violations, world.story(400)])
    assert not world.faults, "\n".join([f"seed {world.seed}", *world.faults, world.story(400)])
    for start in world.agents.started:
        if start.restore_digest is not None:
            parent = (start.restore_path or "").rpartition("/")[2]
            assert start.restore_digest.startswith(f"{parent}."), f"seed {world.seed}: {start}"
    if state.phase is Phase.COMPLETED:
        assert not state.waits
        assert not state.waiters


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_every_promise_holds_whatever_happens(seed: int) -> None:
    judge(build(seed, MemoryJournal()))


@pytest.mark.parametrize("seed", range(FIRST + 1000, FIRST + 1003))
def test_the_same_on_disk(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = SqliteJournal.open(path)
    try:
        judge(build(seed, journal))
    finally:
        journal.close()
    assert not check_store(path)


def test_a_seed_is_repeatable() -> None:
    stories = []
    for _ in range(2):
        world = build(7, MemoryJournal())
        world.run()
        stories.append(world.story(10_000))
    assert stories[0] == stories[1]
