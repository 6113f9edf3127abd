"""``--take-over``: from a head that answers, one that hangs, and one that holds the store."""

from __future__ import annotations

import threading

import psutil
import pytest

from dispatcher import Experiment
from dispatcher.core import events as e
from dispatcher.store.leadership import read_leader
from tests.faults.heads.conftest import PATIENCE_S, wait_until
from tests.support.processes import find_process, is_gone

#: Shorter than the time for which the old head is stopped.
SHORT_LEASES = {"alive": 0.2, "suspect": 1.0, "lost": 4.0}


def test_a_head_that_answers_steps_down_and_its_trials_go_on(steady):
    """Mutation: the server does not call ``step_down``; or ``wind_up`` forgets ``_stepping_down``
    and shuts the agent down."""
    one = steady()
    first = one.lead_and_run()
    agent, seen = one.agent, one.counting()
    second = one.lead(take_over=True, by="dispatcher.cli")
    assert first.wait(PATIENCE_S) == 7
    assert "another head has taken over" in one.said(first)
    wait_until(lambda: one.leads(second), "the second head answers")
    assert one.agent.pid == agent.pid
    wait_until(
        lambda: (now := one.counting()) and all(now.get(t, 0) > n for t, n in seen.items()),
        "both trials go on counting",
    )
    one.release()
    assert second.wait(PATIENCE_S) == 0, one.said(second)
    one.assert_nothing_happened()
    assert [x.epoch for x in one.events() if isinstance(x, e.HeadStarted)] == [1, 2]
    assert not (one.folder / "run.json").exists()


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_a_stopped_head_is_fenced_and_does_no_harm_when_it_goes_on(steady, transport):
    """Mutations, each found here: the agent never reconnects (its trials are taken up by nobody);
    ``RunFile.remove`` looks at no token (nobody finds the new head); the tuner host does not
    look who leads (it goes on with its head). On TCP the old head keeps its port as well; the
    mutation is an agent that does not read its file again."""
    one = steady(leases=SHORT_LEASES, headGrace=60, channel={"transport": transport})
    first = one.lead_and_run()
    agent = one.agent
    old_host = find_process(one.folder, "dispatcher.tuner_host")
    one.stop_between_commits(first)
    refused = one.lead()
    assert refused.wait(PATIENCE_S) == 3  # without being told to, nobody takes over
    assert "--take-over" in one.said(refused)
    second = one.lead(take_over=True)
    wait_until(lambda: one.leads(second), "the second head answers")
    assert psutil.Process(first.pid).status() == psutil.STATUS_STOPPED  # nobody touched it
    wait_until(lambda: is_gone(old_host), "the old host left")
    wait_until(lambda: len(one.counting()) == 2, "the trials are taken up again")
    one.go_on(first)
    assert first.wait(PATIENCE_S) == 7, one.said(first)
    assert one.leads(second)  # its socket and its run file are where they were
    assert one.agent.pid == agent.pid
    one.release()
    assert second.wait(PATIENCE_S) == 0, one.said(second)
    one.assert_nothing_happened()


def test_a_head_that_hangs_in_a_commit_is_ended_if_it_is_proven_to_be_that_head(steady):
    """It holds SQLite's own lock, which no fence takes away. Mutation: ``open_journal`` does not
    end the predecessor."""
    one = steady(headGrace=60)
    first = one.lead(plan="journal.batch.written@12=stop")
    wait_until(
        lambda: psutil.Process(first.pid).status() == psutil.STATUS_STOPPED, "it hangs in a commit"
    )
    second = one.lead(take_over=True)
    wait_until(lambda: {first.poll(), second.poll()} != {None}, "one of them ends")
    assert first.poll() == -9, one.said(second)
    wait_until(lambda: one.leads(second), "the second head answers")
    one.release()
    assert second.wait(PATIENCE_S) == 0, one.said(second)
    one.assert_nothing_happened()


def test_a_head_that_was_stopped_while_it_began_takes_nothing_back(steady):
    """Mutation: ``LockFile.is_current`` is always true, or ``_lead`` does not ask: it binds the
    socket and writes the run file of its successor."""
    one = steady(headGrace=60)
    first = one.lead(plan="head.epoch.journalled=stop")
    wait_until(lambda: psutil.Process(first.pid).status() == psutil.STATUS_STOPPED, "it hangs")
    second = one.lead_and_run(take_over=True)
    one.go_on(first)
    assert first.wait(PATIENCE_S) == 7, one.said(first)
    assert one.leads(second)
    one.release()
    assert second.wait(PATIENCE_S) == 0, one.said(second)
    one.assert_nothing_happened()


def test_of_two_that_take_over_at_once_one_leads(steady):
    """Mutation: ``Leadership.take_over`` does without ``_alone`` or compares no leader."""
    one = steady(headGrace=60)
    first = one.lead_and_run()
    one.stop_between_commits(first)
    rivals = [one.lead(take_over=True) for _ in range(2)]
    wait_until(lambda: any(head.poll() is not None for head in rivals), "one of them gives way")
    (loser,) = [head for head in rivals if head.poll() is not None]
    (winner,) = [head for head in rivals if head is not loser]
    assert loser.returncode in (3, 7), one.said(loser)  # came second, or was taken over itself
    wait_until(lambda: one.leads(winner), "the other one leads")
    leader = read_leader(one.folder)
    assert leader is not None
    assert leader.pid == winner.pid
    one.go_on(first)
    assert first.wait(PATIENCE_S) == 7
    one.release()
    assert winner.wait(PATIENCE_S) == 0, one.said(winner)
    one.assert_nothing_happened()


def test_whoever_waits_in_python_waits_for_the_head_that_leads_at_last(steady):
    """Mutation: ``wait`` waits for the process that led when it was called."""
    one = steady(headGrace=60)
    first = one.lead_and_run()
    opened = Experiment.open(one.folder)
    assert not opened.wait(timeout_s=0.1)
    over = threading.Event()
    waiting = threading.Thread(target=lambda: (opened.wait(), over.set()), daemon=True)
    waiting.start()
    one.stop_between_commits(first)
    opened.start(take_over=True)
    assert opened.running
    assert not over.is_set()
    one.release()
    assert over.wait(PATIENCE_S)  # though the first one still exists
    one.go_on(first)
    assert first.wait(PATIENCE_S) == 7
    one.assert_nothing_happened()
