"""Agents and heads that stand still, for shorter and for longer than their leases."""

from __future__ import annotations

import time

import psutil

from dispatcher.core import events as e
from tests.faults.heads.conftest import PATIENCE_S, wait_until
from tests.support.checker import check_store
from tests.support.processes import is_gone, left_of, words_of

#: Seconds.
SUSPECT, LOST = 1.5, 6.0
LEASES = {"alive": 0.2, "suspect": SUSPECT, "lost": LOST}


def _suspect(one) -> bool:
    return "silent" in str((one.snapshot() or {}).get("troubles"))


def test_whoever_stands_still_for_less_than_its_lease_loses_nothing(steady):
    """First the agent, which the head calls suspect meanwhile, then the head, which has heard
    nothing for longer than the agent's lease and yet gives up nobody. Mutation: ``Silence``
    counts the time between two looks in full."""
    one = steady(leases=LEASES, headGrace=60)
    head = one.lead_and_run()
    agent = one.agent
    one.stop(agent)
    wait_until(lambda: _suspect(one), "the agent is suspect")
    one.go_on(agent)
    wait_until(lambda: not _suspect(one), "the agent is heard again")
    one.stop(head)
    time.sleep(LOST + 1.0)
    one.go_on(head)
    one.release()
    assert head.wait(PATIENCE_S) == 0, one.said(head)
    kinds = [type(x) for x in one.events() if isinstance(x, e.WorkerSuspect | e.WorkerHeard)]
    assert kinds[:2] == [e.WorkerSuspect, e.WorkerHeard]
    one.assert_nothing_happened()


def test_an_agent_that_stood_still_for_longer_than_the_grace_of_heads_goes_on(steady):
    """The head lived all along. (``tests/integration/agent`` has the case in which the agent
    cannot know that when it wakes.)"""
    one = steady(headGrace=2)
    head = one.lead_and_run()
    agent, seen = one.agent, one.counting()
    one.stop(agent)
    time.sleep(5.0)
    one.go_on(agent)
    wait_until(
        lambda: (now := one.counting()) and all(now.get(t, 0) > n for t, n in seen.items()),
        "both trials go on counting",
    )
    one.release()
    assert head.wait(PATIENCE_S) == 0, one.said(head)
    one.assert_nothing_happened()


def test_an_agent_that_stands_still_for_longer_is_given_up_and_does_no_harm_afterwards(steady):
    """Mutations: ``check`` gives nobody up (this hangs); ``_lose`` does not sweep (processes of
    first attempts run beside those of the second); the core counts words of attempt 1."""
    one = steady(leases=LEASES, reuse="none", helper=True)
    head = one.lead_and_run()
    agent = one.agent
    trials: list[psutil.Process] = []

    def both_have_helpers() -> bool:
        trials[:] = agent.children(recursive=True)
        return sum("sleep" in words_of(process) for process in trials) == 2

    wait_until(both_have_helpers, "two trials with a helper each")
    one.stop(agent)
    wait_until(lambda: [x for x in one.events() if isinstance(x, e.WorkerLost)], "it is lost")
    try:
        one.go_on(agent)
    except ProcessLookupError:
        pass  # being given up is the end of it
    wait_until(lambda: is_gone(agent), "it is gone")
    # The head looks for what it has left once it is gone, and only then starts another one.
    wait_until(lambda: all(is_gone(process) for process in trials), "what it ran is gone, too")
    wait_until(lambda: len(one.counting()) == 2, "second attempts count")
    assert one.agent.pid != agent.pid
    one.release()
    assert head.wait(PATIENCE_S) == 0, one.said(head)
    assert check_store(one.folder / "journal.sqlite") == []
    assert set(one.ends()) == {(0, 2), (1, 2), (2, 1), (3, 1)}
    assert left_of(one.folder, PATIENCE_S) == []
