"""The thread that shows an assessor what trials report."""

from __future__ import annotations

import json
import threading
from queue import SimpleQueue

import pytest

from dispatcher.core.actions import Assess, Deliver
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Verdict
from dispatcher.ports import AssessorInput
from dispatcher.tuner_host.assessing import Assessing

PATIENCE_S = 120.0


class Noting:
    """Stops a trial at its third value; notes all that it hears."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.all = threading.Semaphore(0)

    def assess_trial(self, trial_job_id, trial_history):
        self.heard.append((trial_job_id, *trial_history))
        self.all.release()
        return len(trial_history) < 3

    def trial_end(self, trial_job_id, success):
        self.heard.append((trial_job_id, success))
        self.all.release()


def metric(trial: int, value: object, seq: int, attempt: int = 1) -> Assess:
    return Assess(TrialId(trial), json.dumps(value), attempt, seq)


def end(trial: int) -> Deliver:
    return Deliver(TrialId(trial), "{}", None, True, Verdict(None), False, False)


def test_what_was_shown_before_is_shown_first_and_once():
    past = [
        AssessorInput(1, "1.0", 1, 0),
        AssessorInput(2, "5", 1, 0),
        AssessorInput(1, None, success=True),
        AssessorInput(2, "6", 1, 3),
        AssessorInput(2, "7", 1, 4),
    ]
    assessor, said = Noting(), SimpleQueue()
    assessing = Assessing(assessor, said.put, said.put, past)
    assessing.put(metric(2, 6, 3))  # on its way when the past was read
    assessing.put(metric(2, 7, 4))
    assessing.put(metric(2, 8, 5))
    assessing.put(end(2))
    assessing.put(metric(3, 1, 0))
    for _ in range(8):
        assert assessor.all.acquire(timeout=PATIENCE_S)
    assert assessor.heard == [
        ("1", 1.0),
        ("2", 5),
        ("1", True),
        ("2", 5, 6),
        ("2", 5, 6, 7),  # would be stopped; it was then, or is now
        ("2", 5, 6, 7, 8),
        ("2", True),
        ("3", 1),
    ]
    assert said.get(timeout=PATIENCE_S).trial == 2
    assert said.empty()


def test_what_nobody_could_answer_is_answered_now():
    past = [
        AssessorInput(1, "1", 1, 0),
        AssessorInput(1, "2", 1, 1),
        AssessorInput(1, "3", 1, 2, answered=False),  # on which it would have been stopped
        AssessorInput(1, "4", 1, 3, answered=False),
    ]
    assessor, said = Noting(), SimpleQueue()
    Assessing(assessor, said.put, said.put, past).put(metric(1, 4, 3))
    assert said.get(timeout=PATIENCE_S).trial == 1
    assert [len(one) - 1 for one in assessor.heard] == [1, 2, 3], "and not asked after that"
    assert said.empty()


def test_one_that_raises_at_its_past_is_not_asked_to_end():
    class Broken(Noting):
        def recall_trial(self, trial_job_id, trial_history):
            raise KeyError(trial_job_id)

    assessor, said = Broken(), SimpleQueue()
    assessing = Assessing(assessor, said.put, said.put, [AssessorInput(1, "1", 1, 0)])
    assessing.put(metric(1, 2, 1))
    assert assessor.all.acquire(timeout=PATIENCE_S)
    assert assessor.heard == [("1", 1, 2)]
    assert said.empty()


def test_without_a_past_it_begins_at_once():
    assessor, said = Noting(), SimpleQueue()
    Assessing(assessor, said.put, said.put).put(metric(1, 2, 0))
    assert assessor.all.acquire(timeout=PATIENCE_S)
    assert assessor.heard == [("1", 2)]


@pytest.mark.parametrize("text", ["not json", "[" * 100_000, '{"default": '])
def test_a_value_that_is_no_json_is_left_out_and_said(text: str) -> None:
    """Mutation: the thread ends at the first one, and nobody is assessed any more."""
    assessor, said, noted = Noting(), SimpleQueue(), SimpleQueue()
    past = [AssessorInput(1, text, 1, 0), AssessorInput(2, text, 1, 0, answered=False)]
    assessing = Assessing(assessor, said.put, noted.put, past)
    assessing.put(Assess(TrialId(3), text, 1, 1))
    assessing.put(metric(3, 0.5, 2))
    assert assessor.all.acquire(timeout=PATIENCE_S)
    assert assessor.heard == [("3", 0.5)]
    assert "trial 2" in noted.get(timeout=PATIENCE_S)
    note = noted.get(timeout=PATIENCE_S)
    assert "trial 3" in note
    assert len(note) < 1000
