"""Assessors by name, in the process in which they run."""

from __future__ import annotations

import json

import pytest

from dispatcher.backends.testing import Script
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from dispatcher.tuner_host import TunerHostConfig
from dispatcher.tuner_host.config import AssessorSpec
from dispatcher.tuner_tools.rehearsal import Plan, rehearse
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


def rising(order: a.StartAttempt) -> Script:
    """Even trials, and the first two, come to 0.9 and end; the others to 0.5 and do not end: they
    begin when there is somebody to compare them with."""
    if order.trial % 2 and order.trial > 1:
        return Script(ticks=FOR_EVER, metrics=WEAK)
    return Script(ticks=STEPS + 1, metrics=GOOD, final=GOOD[-1])


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
    seen = rehearse(config, Plan(trials=10, slots=2, lookahead=4), script=rising)
    reasons = {
        row.event.trial: row.event.reason
        for row in seen.rows
        if isinstance(row.event, e.AttemptEnded)
    }
    stopped = {trial for trial, why in reasons.items() if why is EndReason.STOPPED_EARLY}
    assert len(reasons) == 10, seen.stuck
    assert stopped == {3, 5, 7, 9}, seen.log
    assert seen.notes == []
