"""Assessors by name, in the process in which they run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from dispatcher.tuner_host import TunerHostConfig
from dispatcher.tuner_host.config import AssessorSpec
from dispatcher.tuner_tools.rehearsal import RehearsalPlan, rehearse
from dispatcher.tuner_tools.scripted import Script
from trial_runtime.endpoint import Endpoint

CASES = {
    "Medianstop": {"start_step": 3},
    "Curvefitting": {"epoch_num": 100_000, "start_step": 5},
    "Threshold": {"lower": 0.55, "startStep": 3},
    "OptunaPruner": {"pruner": "Threshold", "pruner_args": {"lower": 0.55, "n_warmup_steps": 3}},
}

#: Steps of a good trial; a weak one goes on until it is stopped.
STEPS = 40
FOR_EVER = 1 << 40


def curve(limit: float, steps: int) -> tuple[str, ...]:
    return tuple(repr(limit * (1 - (x + 1) ** -2.0)) for x in range(1, steps + 1))


GOOD, WEAK = curve(0.9, STEPS), curve(0.5, 20_000)


class Rising:
    """Good trials come to 0.9 and end, weak ones to 0.5 and do not end. The first two to begin are
    good: with two slots all others have somebody to compare them with.

    Args:
        good: whether the n-th to begin is good.
    """

    def __init__(self, good: Callable[[int], bool]) -> None:
        self._good = good
        self._begun: list[int] = []
        self.weak: set[int] = set()

    def __call__(self, order: a.StartAttempt) -> Script:
        if order.trial not in self._begun:
            self._begun.append(order.trial)
        number = self._begun.index(order.trial)
        if number < 2 or self._good(number):
            return Script(ticks=STEPS + 1, metrics=GOOD, final=GOOD[-1])
        self.weak.add(order.trial)
        return Script(ticks=FOR_EVER, metrics=WEAK)


@pytest.mark.parametrize("name", CASES)
def test_a_named_assessor_stops_what_is_weak_and_lets_go_on_what_is_not(name: str) -> None:
    config = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root="",
        builtin="Random",
        search_space=json.dumps({"x": {"_type": "uniform", "_value": [0, 1]}}),
        assessor=AssessorSpec(builtin=name, class_args=CASES[name]),
        optimize_mode="maximize",
    )
    rising = Rising(lambda number: number % 2 == 0)
    seen = rehearse(
        config, RehearsalPlan(trials=10, slots=2, lookahead=4, deadline_s=400), script=rising
    )
    reasons = {
        row.event.trial: row.event.reason
        for row in seen.rows
        if isinstance(row.event, e.AttemptEnded)
    }
    stopped = {trial for trial, why in reasons.items() if why is EndReason.STOPPED_EARLY}
    assert len(reasons) == 10, seen.stuck
    assert len(rising.weak) == 4
    assert stopped == rising.weak, seen.log
    assert seen.notes == []


#: A median stopping rule that sees when it is shown a curve with holes, or one of its values twice.
OWN = """
from tuners.assessors import MedianstopAssessor


class Own(MedianstopAssessor):
    def assess_trial(self, trial_job_id, trial_history):
        limit = 0.9 if trial_history[0] > 0.5 else 0.5
        whole = [limit * (1 - (x + 1) ** -2.0) for x in range(1, len(trial_history) + 1)]
        assert trial_history == whole, trial_history
        return super().assess_trial(trial_job_id, trial_history)
"""


def test_deaths_of_tuner_and_head_leave_an_assessor_what_it_was_shown(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    config = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root="",
        builtin="Random",
        search_space=json.dumps({"x": {"_type": "uniform", "_value": [0, 1]}}),
        assessor=AssessorSpec(
            class_name="Own", file=str(tmp_path / "own.py"), class_args={"start_step": 3}
        ),
    )
    plan = RehearsalPlan(trials=8, slots=2, lookahead=4, kill_tuner_at=1, kill_head_at=2)
    rising = Rising(lambda number: False)  # that they are weak, only who remembers the two knows
    seen = rehearse(config, plan, script=rising)
    reasons = {
        row.event.trial: row.event.reason
        for row in seen.rows
        if isinstance(row.event, e.AttemptEnded)
    }
    launches = [row for row in seen.rows if isinstance(row.event, e.TunerHostReady)]
    assert len(launches) >= 2
    assert len(reasons) == 8, seen.stuck
    stopped = {trial for trial, why in reasons.items() if why is EndReason.STOPPED_EARLY}
    assert len(rising.weak) == 6
    assert stopped == rising.weak, seen.log
    assert seen.notes == []
