"""Whole experiments, judged by the checker that reads only the journal."""

from __future__ import annotations

from pathlib import Path

from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.notices import NoticeKind
from tests.integration.experiment.conftest import Lab
from tests.support.checker import check_store
from tests.support.processes import left_of


def test_500_trials_with_random_failures_keep_every_promise(lab: Lab, tmp_path: Path) -> None:
    """Promises 1, 2, 3 and 5; and what the tuner saw is what the journal says it saw."""
    folder = lab.create(
        args={"trouble": "random", "folder": str(tmp_path)},
        maxTrialNumber=500,
        reuse="inProcess",
    )
    phase, _ = lab.run(folder)
    assert phase is Phase.COMPLETED
    assert check_store(folder / "journal.sqlite") == []

    events = lab.rows(folder)
    ends = [event.trial for event in events if isinstance(event, e.EndDelivered)]
    assert len(ends) == len(set(ends)) == 500
    calls = (tmp_path / "calls.txt").read_text().split("\n")
    told = [line for line in calls if line.startswith("end")]
    assert [int(line.split()[1]) for line in told] == ends
    results = [line.split()[1] for line in calls if line.startswith("result")]
    assert len(results) == len(set(results))
    failed = [line for line in told if line.endswith("False")]
    assert len(failed) > 30  # the rule makes about a fifth of them fail: it was no idle run
    assert left_of(folder) == []


def test_children_inherit_through_generations(lab: Lab) -> None:
    folder = lab.create(maxTrialNumber=30, reuse="forked")
    phase, _ = lab.run(folder)
    assert phase is Phase.COMPLETED
    finals = {
        event.trial: float(event.value)
        for event in lab.rows(folder)
        if isinstance(event, e.FinalReported)
    }
    # Each reports how many ancestors it has: deep trees appear only by real inheritance.
    assert finals[0] == 1.0
    assert max(finals.values()) >= 6.0


def test_an_authors_own_events_work_with_two_slots(lab: Lab) -> None:
    folder = lab.create("OwnEvents", maxTrialNumber=20)
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    assert check_store(folder / "journal.sqlite") == []


def test_not_now_is_asked_again_and_ends_when_nothing_runs(lab: Lab) -> None:
    folder = lab.create("Exhausted", maxTrialNumber=50, trialConcurrency=3)
    phase, _ = lab.run(folder)
    assert phase is Phase.COMPLETED
    events = lab.rows(folder)
    proposed = {event.trial for event in events if isinstance(event, e.Proposed)}
    refused = [
        event.trial
        for event in events
        if isinstance(event, e.RequestFailed) and event.kind is e.RequestEnd.NOT_NOW
    ]
    assert len(proposed) == 5
    assert set(refused) & proposed, "a request that was refused got its trial later"


def test_fresh_processes_and_commands(lab: Lab) -> None:
    folder = lab.create(maxTrialNumber=6, reuse="none")
    phase, _ = lab.run(folder)
    assert phase is Phase.COMPLETED
    assert check_store(folder / "journal.sqlite") == []


def test_tcp_with_curve_does_the_same(lab: Lab) -> None:
    folder = lab.create(maxTrialNumber=10, channel={"transport": "tcp"})
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    assert check_store(folder / "journal.sqlite") == []
    assert (folder / "keys" / "head").stat().st_mode & 0o777 == 0o600


def test_a_trial_that_fails_is_tried_again_and_then_given_up(lab: Lab, tmp_path: Path) -> None:
    folder = lab.create(
        args={"trouble": "random"}, maxTrialNumber=60, trialRetries=1, onTunerError="continue"
    )
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED
    assert not [n for n in notices if n.kind is NoticeKind.PEER_FAULT]
    attempts = [event for event in lab.rows(folder) if isinstance(event, e.AttemptEnded)]
    assert {event.attempt for event in attempts} == {1, 2}
    assert check_store(folder / "journal.sqlite") == []
