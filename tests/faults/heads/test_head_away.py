"""Trials run while their head is gone for 0, 20 and 60 seconds: nothing restarted, nothing lost."""

from __future__ import annotations

import time

import psutil

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from tests.faults.heads.conftest import PATIENCE_S, wait_until

AWAY_S = (0.0, 20.0, 60.0)


def test_away_for_0_20_and_60_seconds(steady):
    """Three experiments at once, each with the grace that is the default. Trial 0 ends while
    nobody is there, trial 1 goes on. Mutations: the outbox drops words that are not
    acknowledged; the agent's grace is that of a test; ``recover`` does not take up the agent.
    """
    several = [(away, steady()) for away in AWAY_S]
    heads = [one.lead_and_run() for _, one in several]
    agents = [one.agent for _, one in several]
    for (_, one), head in zip(several, heads, strict=True):
        one.kill(head)
        one.release(0)
    gone_at = time.monotonic()
    for (away, one), agent in zip(several, agents, strict=True):
        time.sleep(max(0.0, gone_at + away - time.monotonic()))
        head = one.lead()
        wait_until(lambda one=one, head=head: one.leads(head), "the next head answers")
        wait_until(lambda one=one: 2 in one.counting(), "trial 0's slot is in use again")
        assert one.agent.pid == agent.pid
        one.release()
        assert head.wait(PATIENCE_S) == 0, one.said(head)
        one.assert_nothing_happened()


def test_exit_status_of_a_trial_that_ended_while_nobody_was_there(steady):
    """Mutation: the agent does not keep the end of an attempt until it is acknowledged."""
    one = steady(reuse="none", trials=2)
    head = one.lead_and_run()
    (pid,) = [x.pid for x in one.events() if isinstance(x, e.AttemptStarted) and x.trial == 0]
    one.kill(head)
    one.release(0, code=3)
    wait_until(lambda: not psutil.pid_exists(pid), "its process is gone")
    head = one.lead()
    one.release(1)
    assert head.wait(PATIENCE_S) == 0, one.said(head)
    end = one.ends()[0, 1]
    assert (end.reason, end.exit_code) == (EndReason.FAILED, 3)
    assert one.ends()[1, 1].reason is EndReason.FINISHED
    for each in (0, 1):
        one.assert_complete(each)
