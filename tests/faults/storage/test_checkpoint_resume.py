"""An attempt is killed on its way: the next one goes on there, as if nothing had been."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from tests.faults.experiments import Experiment
from tests.faults.storage.code import stepwise

Make = Callable[..., Experiment]
CODE = Path(__file__).parent / "code"
TRIALS = 3

COMMAND = """
if [ -e "$BEQUEATH_CHECKPOINT_DIR/step" ]; then
  python -c 'import trial_runtime as bq; bq.report_final(float(bq.attempt()))'
else
  echo 1 > "$BEQUEATH_CHECKPOINT_DIR/step"
  kill -9 $$
fi
"""


def _keys(reuse: str) -> dict[str, Any]:
    return {
        "reuse": reuse,
        "trialFunction": "stepwise:trial",
        "trialCodeDirectory": str(CODE),
    }


def _expected(trial: int) -> float:
    """What a training that nobody stopped comes to."""
    state = stepwise.beginning(trial)
    state["dice"] = stepwise.numbers(state["dice"])
    for _now in stepwise.train(state, stepwise.STEPS):
        pass
    return float(state["weights"].sum())


def _finals(experiment: Experiment) -> dict[int, tuple[int, float]]:
    return {
        event.trial: (event.attempt, json.loads(event.value))
        for event in experiment.events
        if isinstance(event, e.FinalReported)
    }


def _checkpoints(experiment: Experiment) -> list[str]:
    folder = experiment.folder / "weights" / ".checkpoints" / experiment.folder.name
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_resuming_equals_never_having_stopped(reuse: str, make: Make) -> None:
    experiment = make(trials=TRIALS, **_keys(reuse))
    experiment.create()
    assert experiment.lead_to_the_end() == 0
    assert _finals(experiment) == {trial: (2, _expected(trial)) for trial in range(TRIALS)}
    for trial in range(TRIALS):
        began = experiment.folder / "trials" / str(trial) / "2" / "artefacts" / "began"
        assert began.read_text() == str(stepwise.DIES_AT), "where its predecessor was killed"
    assert _checkpoints(experiment) == [], "nobody goes on from these any more"


def test_an_attempt_that_ended_with_its_head_and_agent_goes_on_too(make: Make) -> None:
    experiment = make(trials=TRIALS, **_keys("inProcess"))
    experiment.create()
    assert experiment.lead_to_the_end("agent.exit.seen@1=kill") == 0, "the agent dies with all"
    assert experiment.has_struck("agent.exit.seen@1")
    finals = _finals(experiment)
    assert {trial: value for trial, (_, value) in finals.items()} == {
        trial: _expected(trial) for trial in range(TRIALS)
    }
    assert _checkpoints(experiment) == []


def test_a_program_without_python_finds_its_folder(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = make(trials=1, reuse="none", trialCommand=COMMAND)
    values = experiment.values()
    del values["trialFunction"]
    monkeypatch.setattr(experiment, "values", lambda: values)
    experiment.create()
    assert experiment.lead_to_the_end() == 0
    assert _finals(experiment) == {0: (2, 2.0)}
