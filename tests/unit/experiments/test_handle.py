"""The handle on an experiment that does not run, and on one that a head seems to lead."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dispatcher import queries
from dispatcher.api import Experiment
from dispatcher.attempt_files import log_stream
from dispatcher.errors import PassingBackendError, PermanentBackendError, UserError
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.experiments import care
from dispatcher.experiments.attempts import LocatedTrial
from dispatcher.experiments.find import Purpose
from dispatcher.experiments.handle import ExperimentHandle, Updated
from dispatcher.folders.names import CHANGE_LOCK_NAME, LOCK_NAME
from dispatcher.folders.ownership import NotOurs
from dispatcher.queries import TrialFilter
from dispatcher.store.lock_file import is_held
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


@pytest.mark.parametrize("where", ["fsync", "mkdir"])
def test_a_disk_that_takes_no_experiment_is_no_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    values: dict[str, Any] = {
        "tuner": {"name": "random"},
        "trialCommand": "true",
        "trialConcurrency": 2,
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "experimentWorkingDirectory": str(tmp_path / "home"),
    }
    if where == "mkdir":
        (tmp_path / "file").touch()
        values["weightsRoot"] = str(tmp_path / "file" / "weights")
    config = build_experiment(values, base_folder=tmp_path)

    def full(descriptor: int) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if where == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PermanentBackendError, match=r"(No space left|Not a directory)") as refused:
        ExperimentHandle.create(config)
    assert refused.value.where.startswith(str(tmp_path))


@pytest.fixture
def located(handle: ExperimentHandle) -> Iterator[LocatedTrial]:
    """Trial 0, with an output of its only attempt."""
    made = handle.place.attempt(0, 1)
    made.mkdir(parents=True)
    (made / "stdout").write_text("hello")
    with handle.attempts(0) as trial:
        yield trial


@contextmanager
def led(handle: ExperimentHandle) -> Iterator[None]:
    """As if a head were there: its lock is held."""
    with (handle.folder / "head.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_stopped_experiment_is_changed_in_its_record(handle: ExperimentHandle) -> None:
    assert handle.update("maxTrialNumber", 9) == (False, "", 0)
    assert handle.update("max_trial_number", "2").beyond == handle.status().submitted > 2
    assert handle.update("maxTrialNumber", 9).beyond == 0
    assert handle.config().max_trial_number == 9
    with pytest.raises(UserError):
        handle.update("optimizeMode", "maximize")


def test_a_notebook_changes_a_stopped_experiment_as_well(handle: ExperimentHandle) -> None:
    experiment = Experiment.open(handle.folder)
    experiment.update("trial_concurrency", 5)
    assert handle.config().trial_concurrency == 5
    assert experiment.config == handle.config()


def test_a_notebook_hears_what_will_be_missed(
    handle: ExperimentHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = "the weights of 7 trials are gone"
    monkeypatch.setattr(ExperimentHandle, "update", lambda *_: Updated(False, gone))
    with pytest.warns(UserWarning, match=gone):
        Experiment.open(handle.folder).update("max_trial_number", 9)


def test_a_notebook_is_warned_of_names_that_no_trial_has(handle: ExperimentHandle) -> None:
    """Mutation: a misspelt condition selects nothing, without a word."""
    experiment = Experiment.open(handle.folder)
    text = "^no trial has a parameter 'valu'; did you mean value\\?$"
    calls: list[Callable[[], Any]] = [
        lambda: experiment.trials("valu < 5"),
        lambda: experiment.trials(TrialFilter(condition="valu < 5")),
        lambda: experiment.perform("trial ls", where="valu < 5").trials,
    ]
    for call in calls:
        with pytest.warns(UserWarning, match=text) as heard:
            assert list(call()) == []
        assert [one.filename for one in heard] == [__file__]
    assert experiment.trials("value > -1000000") is not None  # a warning is an error here


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


def test_no_head_begins_in_a_folder_that_is_being_deleted(
    handle: ExperimentHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = [handle.folder / LOCK_NAME, handle.folder / CHANGE_LOCK_NAME]
    held = []

    def look_on(folder: Path | str, **how: Any) -> None:
        held.append(all(is_held(lock) for lock in locks))
        rmtree(folder, **how)

    (handle.folder / "of-a-user").mkdir()
    rmtree = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", look_on)
    care.delete(handle.place)
    assert len(held) > 2
    assert all(held[:-1])  # the last one is the folder with the sockets
    assert not handle.folder.exists()


def test_a_folder_whose_lock_cannot_be_taken_is_deleted(handle: ExperimentHandle) -> None:
    (handle.folder / CHANGE_LOCK_NAME).unlink(missing_ok=True)
    (handle.folder / CHANGE_LOCK_NAME).mkdir()
    care.delete(handle.place)
    assert not handle.folder.exists()


@pytest.mark.parametrize("lasts", [False, True])
def test_a_folder_in_which_somebody_writes_still_is_deleted_again(
    lasts: bool, handle: ExperimentHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that was just cancelled ends meanwhile. Mutations: the first try is the last one;
    there is no last one."""
    logs = handle.folder / "agents/w/logs"
    logs.mkdir(parents=True)
    usual = os.rmdir
    times: list[str] = []

    def rmdir(name: str, **where: Any) -> None:
        if name == "logs" and (lasts or not times):
            times.append(name)
            (logs / "late").touch()
        usual(name, **where)

    monkeypatch.setattr(os, "rmdir", rmdir)
    monkeypatch.setattr(care, "WRITTEN_S", 0.1 if lasts else 60.0)
    if lasts:
        with pytest.raises(UserError, match="cannot be deleted: Directory not empty"):
            care.delete(handle.place)
    else:
        care.delete(handle.place)
    assert handle.folder.exists() == lasts
    assert times


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


def test_trials_come_in_the_order_that_is_asked_for(handle: ExperimentHandle) -> None:
    """Mutations: the best come last; the other way round is the same."""
    best = [one.id for one in handle.leaders(6).trials]
    scored, by_value = queries.TrialFilter(with_value=True), queries.TrialSort.VALUE
    assert [one.id for one in handle.trials(scored, sort=by_value)] == best
    assert handle.trials(scored, sort=by_value, reverse=True, limit=1)[0].id == best[-1]
    every = [one.id for one in handle.trials()]
    assert every == sorted(every)
    assert [one.id for one in handle.trials(reverse=True, limit=2)] == every[:-3:-1]
    assert [one["trial"] for one in handle.rows()] == every
    assert handle.csv().count("\n") == len(every) + 1
    assert handle.inherits == any(one.parent is not None for one in handle.trials())


def test_there_are_three_pictures(handle: ExperimentHandle, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no plot 'tree'"):
        handle.draw("tree", tmp_path / "tree.png")


def test_nobody_is_asked_whether_to_delete_what_runs(handle: ExperimentHandle) -> None:
    """Mutation: the question comes first. Whoever says no keeps it."""
    asked: list[str] = []
    with led(handle), pytest.raises(UserError, match="is running"):
        handle.delete(lambda: asked.append("running"))
    with pytest.raises(KeyboardInterrupt):
        handle.delete(_no)
    assert handle.folder.is_dir()
    handle.delete(lambda: asked.append("stopped"))
    assert (handle.folder.exists(), asked) == (False, ["stopped"])


def _no() -> None:
    raise KeyboardInterrupt


def test_code_of_its_own_is_laid_down_before_the_record(tmp_path: Path) -> None:
    """Mutation: the record names code that a crash has kept from being written."""
    values = {
        "tuner": {"name": "random"},
        "trialCommand": "true",
        "trialConcurrency": 1,
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "experimentWorkingDirectory": str(tmp_path),
    }
    config = build_experiment(values, base_folder=tmp_path)
    made = ExperimentHandle.create(config, "mine", {"notebook/trial.py": "x = 1\n"})
    assert made.id == "mine"
    assert (made.folder / "notebook" / "trial.py").read_text() == "x = 1\n"
    with pytest.raises(PermanentBackendError, match="cannot write the code"):
        ExperimentHandle.create(config, "other", {"no/such/depth.py": ""})
    assert not (tmp_path / "other" / "experiment.json").exists()


def test_output_is_read_where_the_attempt_ran(located: LocatedTrial) -> None:
    one = located.attempt(None)
    files, listed, away, _ = located.show_files(one, "stdout")
    assert ([each.path for each in listed.entries], away) == (["stdout"], None)
    assert b"".join(located.follow(one, files, "stdout")) == b"hello"
    assert located.wait_until_begun(1)
    assert not located.wait_until_begun(7), "it is over, and had one attempt only"


def test_what_was_fetched_stands_in_for_a_machine_that_is_away(
    located: LocatedTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: the reason is lost; an empty folder counts as fetched."""

    def away(*_: object, **__: object) -> NoReturn:
        raise PassingBackendError("no route", where="far")

    monkeypatch.setattr("dispatcher.experiments.attempts.files_of", away)
    far = replace(located.attempt(None), worker="far")
    files, listed, error, _ = located.show_files(far)
    assert [each.path for each in listed.entries] == ["stdout"]
    assert error is not None
    assert error.message == "no route"
    assert b"".join(log_stream.whole(files, "stdout")) == b"hello"
    with pytest.raises(PassingBackendError, match="no route"):
        located.show_files(far, "stderr")
    with pytest.raises(PassingBackendError, match="no route"):
        located.show_files(located.attempt(None))
