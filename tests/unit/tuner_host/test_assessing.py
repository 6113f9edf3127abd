"""The thread that shows an assessor what trials report."""

from __future__ import annotations

import json
import threading
from queue import SimpleQueue

import msgspec

from dispatcher.core.actions import Assess, Deliver
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Verdict
from dispatcher.ports import Shown, shown_beside
from dispatcher.tuner_host.assessing import Assessing

PATIENCE_S = 60.0


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


def test_what_was_shown_before_is_shown_first_and_once(tmp_path):
    path = shown_beside(tmp_path / "restore")
    past = [
        Shown(1, "1.0", 1, 0),
        Shown(2, "5", 1, 0),
        Shown(1, None, success=True),
        Shown(2, "6", 1, 3),
        Shown(2, "7", 1, 4),
    ]
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in past))
    assessor, said = Noting(), SimpleQueue()
    assessing = Assessing(assessor, said.put, said.put, path)
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


def test_one_that_raises_at_its_past_is_not_asked_to_end(tmp_path):
    class Broken(Noting):
        def recall_trial(self, trial_job_id, trial_history):
            raise KeyError(trial_job_id)

    path = tmp_path / "shown"
    path.write_bytes(msgspec.json.encode(Shown(1, "1", 1, 0)) + b"\n")
    assessor, said = Broken(), SimpleQueue()
    assessing = Assessing(assessor, said.put, said.put, path)
    assessing.put(metric(1, 2, 1))
    assert assessor.all.acquire(timeout=PATIENCE_S)
    assert assessor.heard == [("1", 1, 2)]
    assert said.empty()


def test_without_a_past_it_begins_at_once(tmp_path):
    assessor, said = Noting(), SimpleQueue()
    Assessing(assessor, said.put, said.put, tmp_path / "none").put(metric(1, 2, 0))
    assert assessor.all.acquire(timeout=PATIENCE_S)
    assert assessor.heard == [("1", 2)]
