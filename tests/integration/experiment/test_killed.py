"""SIGKILL for the head and for the tuner host while trials run; then resume, then the checker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.trials import metrics
from tests.integration.experiment.conftest import Lab
from tests.support.checker import check_store
from tests.support.processes import find_process, is_gone, left_of, wait_until


def _two_run(lab: Lab, folder: Path, after: int = 0) -> None:
    """Wait until two trials run, so many after others."""
    wait_until(lambda: lab.snapshot(folder)["ended"] >= after, f"{after} trials over")
    wait_until(lambda: len(lab.snapshot(folder)["running"]) == 2, "two trials running")


def test_a_killed_head_is_resumed_and_its_trials_are_taken_up(lab: Lab) -> None:
    """Nothing restarted, nothing lost, nothing counted twice."""
    folder = lab.create(
        function="slow", maxTrialNumber=12, headGrace=60, trialEnvironment=lab.hold(5)
    )
    pid = lab.start(folder)
    _two_run(lab, folder, after=3)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pid) or _is_zombie(pid), "the head is gone")
    agent = find_process(folder, "trial_runtime.agent")
    lab.let_go()
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    assert check_store(folder / "journal.sqlite") == []
    events = lab.rows(folder)
    assert not [event for event in events if isinstance(event, e.WorkerLost)]
    attempts = {(x.trial, x.attempt) for x in events if isinstance(x, e.AttemptEnded)}
    assert {number for _, number in attempts} == {1}, "no trial was started again"
    with ExperimentReader.open(folder) as reader:
        for trial in range(12):
            assert len(metrics(reader, trial)) == 11  # ten intermediate, one final
    wait_until(lambda: is_gone(agent), "the agent is gone")
    assert left_of(folder) == []


def test_without_a_new_head_nothing_is_left_after_the_grace(lab: Lab) -> None:
    """Promise 6."""
    folder = lab.create(function="slow", maxTrialNumber=200, headGrace=2)
    pid = lab.start(folder)
    _two_run(lab, folder)
    os.kill(pid, signal.SIGKILL)
    assert left_of(folder) == []
    # The spool and the journal are what is left; the next head goes on from them.
    folder_json = folder / "experiment.json"
    folder_json.write_text(
        folder_json.read_text().replace('"maxTrialNumber": 200', '"maxTrialNumber": 20')
    )
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    assert check_store(folder / "journal.sqlite") == []


def test_a_killed_tuner_host_is_restored_while_trials_go_on(lab: Lab, tmp_path: Path) -> None:
    folder = lab.create(
        function="slow",
        maxTrialNumber=12,
        args={"folder": str(tmp_path)},
        trialEnvironment=lab.hold(5),
    )
    pid = lab.start(folder)
    _two_run(lab, folder, after=3)
    os.kill(find_process(folder, "dispatcher.tuner_host").pid, signal.SIGKILL)
    wait_until(lambda: _lost(lab, folder, e.TunerHostLost), "it is missed")
    lab.let_go()
    wait_until(lambda: not psutil.pid_exists(pid) or _is_zombie(pid), "the experiment is over")
    assert check_store(folder / "journal.sqlite") == []
    events = lab.rows(folder)
    assert len([event for event in events if isinstance(event, e.TunerHostLost)]) == 1
    assert {x.attempt for x in events if isinstance(x, e.AttemptEnded)} == {1}
    ends = [x.trial for x in events if isinstance(x, e.EndDelivered)]
    assert sorted(ends) == list(range(12))


def test_a_killed_agent_loses_attempts_and_no_trial(lab: Lab) -> None:
    folder = lab.create(function="slow", maxTrialNumber=8, trialEnvironment=lab.hold(5))
    pid = lab.start(folder)
    _two_run(lab, folder, after=2)
    os.kill(find_process(folder, "trial_runtime.agent").pid, signal.SIGKILL)
    wait_until(lambda: _lost(lab, folder, e.WorkerLost), "it is missed")
    lab.let_go()
    wait_until(lambda: not psutil.pid_exists(pid) or _is_zombie(pid), "the experiment is over")
    assert check_store(folder / "journal.sqlite") == []
    events = lab.rows(folder)
    assert [event for event in events if isinstance(event, e.WorkerLost)]
    assert sorted(x.trial for x in events if isinstance(x, e.EndDelivered)) == list(range(8))
    assert left_of(folder) == []


def _lost(lab: Lab, folder: Path, kind: type[e.Event]) -> bool:
    return any(isinstance(event, kind) for event in lab.rows(folder))


def _is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
