"""The handle on an experiment that does not run, and on one that a head seems to lead."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dispatcher.api import Experiment
from dispatcher.errors import PassingBackendError, UserError
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.experiments import care
from dispatcher.experiments.handle import ExperimentHandle, Purpose
from dispatcher.folders.ownership import NotOurs
from tests.unit.queries.evolution import evolve, make_folder


@pytest.fixture
def handle(tmp_path: Path) -> ExperimentHandle:
    folder = make_folder(tmp_path / "home")
    evolve(folder, 6)
    values = {
        "tuner": {"name": "random"},
        "trialCommand": "true",
        "trialConcurrency": 2,
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
    }
    (folder / "experiment.json").write_text(to_json(build_experiment(values, base_folder=folder)))
    return ExperimentHandle(folder)


@contextmanager
def led(handle: ExperimentHandle) -> Iterator[None]:
    """As if a head were there: its lock is held."""
    with (handle.folder / "head.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_stopped_experiment_is_changed_in_its_record(handle: ExperimentHandle) -> None:
    assert handle.update("maxTrialNumber", 9) == (False, "")
    assert handle.config().max_trial_number == 9
    with pytest.raises(UserError):
        handle.update("optimizeMode", "maximize")


def test_a_notebook_changes_a_stopped_experiment_as_well(handle: ExperimentHandle) -> None:
    Experiment.open(handle.folder).update("trial_concurrency", 5)
    assert handle.config().trial_concurrency == 5


def test_a_head_that_does_not_answer_is_not_passed_over(handle: ExperimentHandle) -> None:
    """Mutation: the record is changed although a head leads."""
    before = handle.config()
    with led(handle), pytest.raises(PassingBackendError):
        handle.update("maxTrialNumber", 9)
    assert handle.config() == before


@pytest.mark.parametrize("wish", ["stop", "submit", "stop_trials", "import_results"])
def test_some_wishes_need_a_head(handle: ExperimentHandle, wish: str) -> None:
    wishes = {
        "stop": lambda: handle.stop(reason="test"),
        "submit": lambda: handle.submit({"x": 0.5}),
        "stop_trials": lambda: list(handle.stop_trials([1])),
        "import_results": lambda: handle.import_results([{"parameter": {"x": 1}, "value": 2}]),
    }
    with pytest.raises(PassingBackendError, match="is not running"):
        wishes[wish]()


def test_a_wait_is_bounded_and_ends_with_the_head(handle: ExperimentHandle) -> None:
    with led(handle):
        assert not handle.wait(timeout_s=0.0)
    assert handle.wait()


def test_an_experiment_that_runs_is_not_deleted(handle: ExperimentHandle) -> None:
    with led(handle), pytest.raises(UserError, match="is running"):
        care.delete(handle.place)
    assert handle.folder.is_dir()
    care.delete(handle.place)
    assert not handle.folder.exists()


def test_a_damaged_store_is_found_for_its_care(handle: ExperimentHandle) -> None:
    base = handle.folder.parent
    handle.place.journal.write_bytes(b"no store")
    assert ExperimentHandle.find(handle.id, base, Purpose.DAMAGED) == handle


def test_the_best_are_as_many_as_were_asked_for(handle: ExperimentHandle) -> None:
    trials, objectives = handle.leaders(None, few=2)
    assert (len(trials), dict(objectives)) == (2, {})
    assert [one.id for one in handle.leaders(1).trials] == [trials[0].id]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to somebody else")
def test_a_strangers_record_is_not_changed(handle: ExperimentHandle) -> None:
    """Mutation: an update asks nobody whose experiment it is."""
    for path in (handle.folder, *handle.folder.iterdir()):
        os.chown(path, 1234, -1)
    with pytest.raises(NotOurs):
        handle.update("max_trial_number", 6)
    assert (handle.folder / "experiment.json").stat().st_uid == 1234
