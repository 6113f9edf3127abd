"""Ends that a search earns, and callbacks, with real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.experiments.standing import standing
from dispatcher.head import sink_process
from tests.integration.experiment.conftest import Lab
from tests.support.checker import check_store
from tests.support.processes import wait_until

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def create(lab: Lab, **keys: Any) -> Path:
    return lab.create(
        {"name": "Random"}, trialFunction="ending:train", searchSpace=SPACE, trialConcurrency=1,
        maxTrialNumber=100, **keys
    )  # fmt: skip


def ended(lab: Lab, folder: Path) -> int:
    return sum(isinstance(event, e.AttemptEnded) for event in lab.rows(folder))


def told(folder: Path) -> list[dict[str, Any]]:
    file = folder / "told"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_search_ends_at_its_target_and_goes_on_with_a_higher_one(lab: Lab) -> None:
    """Mutations: a resume begins another trial; the changed target is not the new head's."""
    folder = create(lab, stopWhen={"target": 0.9})
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED
    reason = "the target 0.9 is reached by trial 4: 0.9"
    assert notices[-1].text == reason
    assert standing(folder).experiment.phase_reason == reason
    before = ended(lab, folder)
    assert 5 <= before <= 6  # the next one may have begun
    assert lab.run(folder)[0] is Phase.COMPLETED
    assert ended(lab, folder) == before
    ExperimentHandle.find(str(folder)).update("stopWhen", {"target": 0.94})
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED
    assert notices[-1].text == "the target 0.94 is reached by trial 7: 0.95"
    answer = CliRunner().invoke(app, ["status", str(folder)])
    assert "the target 0.94 is reached by trial 7: 0.95" in answer.output
    assert check_store(folder / "journal.sqlite") == []


def test_a_search_that_gets_no_better_ends(lab: Lab) -> None:
    folder = create(lab, stopWhen={"noProgress": 2}, optimizeMode="minimize")
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED
    assert notices[-1].text == "no progress in 2 trials: the best is 0.3, of trial 2"


def test_callbacks_are_called_beside_the_search_and_after_it(lab: Lab) -> None:
    """Mutation: the process is not started for callbacks alone, or hears nothing of the end."""
    folder = create(
        lab,
        stopWhen={"target": 0.9},
        callbacks={
            "onTrialEnd": "ending:tell",
            "onNewBest": "ending:tell",
            "onExperimentEnd": "ending:tell",
        },
    )
    phase, _ = lab.run(folder)
    assert phase is Phase.COMPLETED
    wait_until(lambda: "experiment_end" in [each["event"] for each in told(folder)], "it is over")
    calls = told(folder)
    ends = [each["trial"] for each in calls if each["event"] == "trial_end"]
    assert ends == list(range(len(ends)))
    assert [each["trial"] for each in calls if each["event"] == "new_best"] == [0, 1, 4]
    assert calls[-1]["status"] == "completed"
    assert calls[-1]["reason"] == "the target 0.9 is reached by trial 4: 0.9"
    assert calls[-1]["value"] == 0.9
    command = [sys.executable, "-P", "-m", "dispatcher.cli", "sink", str(folder)]
    subprocess.run(command, check=True)
    assert len(told(folder)) == len(calls)
    (line,) = standing(folder).sinks
    assert (line.name, line.behind, line.error) == ("callbacks", 0, "")


def test_a_callback_that_hangs_holds_up_nothing_and_its_lag_is_shown(
    lab: Lab, monkeypatch: Any
) -> None:
    """Mutation: the head waits for the calls."""
    monkeypatch.setattr(sink_process, "END_S", 0.5)
    folder = create(
        lab,
        stopWhen={"noProgress": 2},
        optimizeMode="minimize",
        callbacks={"onTrialEnd": "ending:hangs", "timeLimit": "4s"},
    )
    phase, _ = lab.run(folder)
    assert phase is Phase.COMPLETED
    assert len(told(folder)) < ended(lab, folder)
    assert all(line.behind > 0 for line in standing(folder).sinks)
    wait_until(lambda: len(told(folder)) == ended(lab, folder), "the calls are made all the same")

    def rest() -> bool:
        return [line.behind for line in standing(folder).sinks] == [0]

    wait_until(rest, "and it is known how far they are")
    (line,) = standing(folder).sinks
    assert "took longer than 4 s" in line.error
