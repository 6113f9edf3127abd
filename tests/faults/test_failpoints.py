"""SIGKILL at each failpoint, then resume, then the judge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.control.client import HeadClient
from dispatcher.core import events as e
from dispatcher.errors import DispatcherError
from tests.faults.cases import CASES, CREATION, TAKE_OVER, UPDATING
from tests.faults.experiments import HEAD_S, ROOT, Experiment
from tests.support.lengths import every, first
from tests.support.processes import left_of, wait_until

Make = Callable[..., Experiment]

SPOOL = [name for name in CASES if name.startswith("agent.spool.")]

_CREATE = """
import json, sys
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
create(build_experiment(json.load(sys.stdin)))
"""


@pytest.mark.parametrize("name", every(5, [name for name in CASES if name not in SPOOL]))
def test_whoever_dies_there_nothing_is_lost_and_nothing_counts_twice(name: str, make: Make) -> None:
    case = CASES[name]
    experiment = make(trials=case.trials, **case.keys)
    experiment.create()
    plans = filter(None, (case.first, case.plan(name)))
    killed = experiment.lead_to_the_end(*plans)
    assert experiment.has_struck(case.place(name)), "it was never reached"
    assert killed == int(case.head) + bool(case.first)
    experiment.judge(spoilt=case.spoilt)


@pytest.mark.parametrize("name", first(1, SPOOL))
def test_an_agent_that_dies_while_it_spools_for_a_head_that_is_away(name: str, make: Make) -> None:
    case = CASES[name]
    experiment = make(trials=case.trials, function="train_longer", headGrace=60)
    experiment.create()
    plan = case.plan(name)
    assert experiment.lead(plan) < 0, "the head goes first"
    if name == "agent.spool.obsolete":  # it is the next head that makes it so
        wait_until((experiment.folder / "spool-local").exists, "words are spooled")
    else:
        wait_until(lambda: experiment.has_struck(case.place(name)), "the agent spools and dies")
    spooled = experiment.spooled_ends()
    assert spooled or name != "agent.spool.synced", "it was no idle spool"
    assert experiment.lead_to_the_end(plan) == 0
    assert experiment.has_struck(case.place(name)), "it was never reached"
    experiment.judge(spoilt=case.spoilt)
    ended = [(x.trial, x.attempt) for x in experiment.events if isinstance(x, e.AttemptEnded)]
    assert set(spooled) <= set(ended)
    again = {(trial, attempt + 1) for trial, attempt in spooled}
    assert not again & set(ended), "what the spool says was heard, and not done once more"


@pytest.mark.parametrize("name", CREATION)
def test_an_experiment_that_was_half_laid_down(name: str, make: Make) -> None:
    """It can be resumed, or says in a sentence that it has to be created again."""
    experiment = make(trials=4)
    done = subprocess.run(
        [sys.executable, "-c", _CREATE],
        input=json.dumps(experiment.values()),
        env=experiment.environment(f"{name}=kill"),
        cwd=ROOT,
        text=True,
        timeout=HEAD_S,
    )
    assert done.returncode < 0
    (experiment.folder,) = experiment.base.glob("faults-*")
    if CREATION[name]:
        assert experiment.lead_to_the_end() == 0
        experiment.judge()
        return
    assert experiment.lead() in (3, 4)
    assert "create" in experiment.stderr
    assert "Traceback" not in experiment.stderr
    assert left_of(experiment.folder) == []


def _held(folder: Path) -> dict[str, Any]:
    """Trials that go on until a file is there, whatever the machine is busy with meanwhile."""
    return {"function": "train_longer", "trialEnvironment": {"GATE": str(folder / "gate")}}


@pytest.mark.parametrize("name", UPDATING)
def test_a_head_that_dies_while_a_setting_is_changed(name: str, make: Make, tmp_path: Path) -> None:
    experiment = make(trials=20, **_held(tmp_path))
    experiment.create()
    head = experiment.start(f"{name}=kill")
    wait_until(experiment.answers, "the head answers")
    with pytest.raises(DispatcherError), HeadClient(experiment.folder, timeout_s=2.0) as client:
        client.ask("update", key="maxTrialNumber", value=12)
    assert head.wait(HEAD_S) < 0
    assert experiment.has_struck(name)
    (tmp_path / "gate").touch()
    if UPDATING[name]:
        experiment.trials = 12
    assert experiment.lead_to_the_end() == 0
    experiment.judge()


@pytest.mark.parametrize("name", TAKE_OVER)
def test_a_head_that_dies_while_it_takes_over(name: str, make: Make, tmp_path: Path) -> None:
    """From one that is stopped, and goes on when it does not lead any more."""
    experiment = make(trials=30, **_held(tmp_path))
    experiment.create()
    older = experiment.start()
    wait_until(experiment.answers, "the head answers")
    os.kill(older.pid, signal.SIGSTOP)
    (tmp_path / "gate").touch()
    try:
        assert experiment.lead(f"{name}=kill", "--take-over") < 0
        assert experiment.has_struck(name)
        newer = experiment.start("", "--take-over")
    finally:
        os.kill(older.pid, signal.SIGCONT)
    assert newer.wait(HEAD_S) == 0, experiment.stderr
    assert older.wait(HEAD_S) != 0, "it was not told that it does not lead any more"
    experiment.judge()


def test_an_agent_that_no_later_head_can_know_of_does_not_begin(make: Make) -> None:
    """Else two of them would be called by one name."""
    experiment = make()
    experiment.create()
    assert experiment.lead("launch.agent.spawned=kill") < 0
    assert left_of(experiment.folder) == [], "it has left by itself"
