"""The tuner host's threads, their interleaving drawn by seeds: nobody's wake-up is lost, a state is
exact, results come with what their trials ran with, whoever runs when."""

from __future__ import annotations

import pytest

from tests.support.scheduled_host import ScheduledHost

SEEDS, BLOCK = 100, 10


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_whoever_runs_when(first: int) -> None:
    for seed in range(first, first + BLOCK):
        wrong = ScheduledHost(seed, keeps_state=seed % 2 == 0, restarts=seed % 4 // 2).run()
        assert not wrong, f"schedule {seed}: {wrong}"


#: What each block of restless seeds meets: what is never drawn is never tested.
MET = {
    "stands for long",
    "waits for long",
    "stopped",
    "cancelled",
    "WaitTimeout",
    "VersionTimeout",
    "ParentFailed",
    "no state",
    "a state that cannot be kept",
}


@pytest.mark.parametrize("first", range(0, 60, 30))
def test_whatever_the_author_does(first: int) -> None:
    """Waits with limits, for versions too; an Event of its own before and after; a state that is
    not there; a user who stops what is being proposed."""
    met: set[str] = set()
    for seed in range(first, first + 30):
        restarts = seed % 3 // 2
        scheduled = ScheduledHost(seed, keeps_state=seed % 4 != 0, restarts=restarts, restless=True)
        wrong = scheduled.run()
        assert not wrong, f"restless schedule {seed}: {wrong}"
        met.update(scheduled.met)
    assert met >= MET, f"not met: {MET - met}"


def test_a_schedule_is_repeatable() -> None:
    stories = []
    for _ in range(2):
        scheduled = ScheduledHost(3, keeps_state=True, restarts=1)
        scheduled.run()
        stories.append([row.event for row in scheduled.journal.rows()])
    assert stories[0] == stories[1]
