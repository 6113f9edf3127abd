"""Studies among faults: disks, locks, forks, Ctrl-C, arguments that nobody thought of."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bequeath as bq
from dispatcher.errors import StoreError, UserError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.names import STORE_NAME
from dispatcher.store import connection
from dispatcher.study import flushing, record
from dispatcher.study.flushing import FLUSH_S, Flusher
from dispatcher.study.turn import StudyTurn
from trial_runtime.api_errors import InvalidMetric

SPACE = {"x": bq.uniform(0, 1)}


@pytest.fixture
def study(tmp_path: Path) -> Any:
    with bq.Study(SPACE, folder=tmp_path / "study", tuner="Random", seed=1) as made:
        yield made


@pytest.fixture
def by_run(tmp_path: Path) -> Any:
    with bq.Study(folder=tmp_path / "by-run", tuner="Random", seed=1) as made:
        yield made


def in_a_fork(work: Callable[[], object]) -> int:
    """Do something in a fork; its exit code, 7 if it hangs for ten seconds."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, lambda *_: os._exit(7))
        signal.alarm(10)
        try:
            work()
        except UserError as error:
            os._exit(3 if "is led by process" in error.message else 4)
        except BaseException:  # noqa: BLE001 - a fork must not go on as a test
            os._exit(5)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# -- forks ------------------------------------------------------------------------------------


def test_a_fork_is_refused_while_another_thread_has_its_turn() -> None:
    """Mutation: the fork waits for a lock whose holder is not in it."""
    turn, has, go = StudyTurn(), threading.Event(), threading.Event()

    def hold() -> None:
        with turn:
            has.set()
            go.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    has.wait(10)
    try:
        assert in_a_fork(turn.__enter__) == 3
    finally:
        go.set()
        thread.join()


def test_a_fork_that_looks_at_a_study_writes_nothing(
    study: bq.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: it writes what its parent has put off, which then cannot write it any more."""
    monkeypatch.setattr(record, "TOGETHER_S", 60.0)
    monkeypatch.setattr(flushing, "FLUSH_S", 60.0)
    study.tell(study.ask(), 0.5)
    assert in_a_fork(study.best) == 3
    study.tell(study.ask(), 0.7)
    study.close()
    assert ExperimentHandle(study.folder).verify().ok
    assert [each.value for each in ExperimentHandle(study.folder).trials()][:2] == [0.5, 0.7]


def test_a_fork_that_lives_on_does_not_keep_the_study(study: bq.Study) -> None:
    """As workers of a pool do. Mutation: forks hold the lock file open."""
    rest, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(rest, 1)  # until the parent lets go
        os._exit(0)
    os.close(rest)
    try:
        study.close()
        with bq.Study(folder=study.folder) as again:
            again.ask()
    finally:
        os.close(write)
        os.waitpid(child, 0)


# -- what cannot be written -------------------------------------------------------------------


def test_what_could_not_be_written_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the facts of a commit that failed are dropped, and their rows stay."""
    monkeypatch.setattr(record, "TOGETHER_S", 0.0)
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_S", 0.05)
    study = bq.Study(SPACE, folder=tmp_path / "study", tuner="Random", seed=1)
    t, other = study.ask(), study.ask()
    with closing(sqlite3.connect(study.folder / STORE_NAME)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            study.tell(t, 0.5)
        blocker.execute("ROLLBACK")
    study.tell(other, 0.7)
    study.close()
    handle = ExperimentHandle(study.folder)
    assert handle.verify().ok
    assert [each.value for each in handle.trials() if each.over] == [0.5, 0.7]
    with bq.Study(folder=study.folder) as again:
        assert again.unfinished == []


def test_what_was_put_off_and_failed_is_tried_again_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutation: the thread that writes ends with its first error, and nobody hears of it."""
    monkeypatch.setattr(flushing, "AGAIN_S", 0.02)
    turn, full, tries = StudyTurn(), True, 0

    def write() -> None:
        nonlocal tries
        tries += 1
        if full:
            raise StoreError("the disk is full")

    flusher = Flusher(turn, write)
    with turn:
        flusher.soon()
    wait_for(lambda: tries > 2)
    with pytest.raises(StoreError), turn:
        flusher.soon()
    full, before = False, tries
    wait_for(lambda: tries > before)
    with turn:
        flusher.soon()
    flusher.close()


def test_what_its_caller_has_written_is_not_written_again() -> None:
    """Mutation: the thread writes beside a quick loop that does so itself."""
    wrote: list[int] = []
    flusher = Flusher(StudyTurn(), lambda: wrote.append(1))
    flusher.soon()
    flusher.written()
    threading.Event().wait(4 * FLUSH_S)
    assert not wrote
    flusher.soon()
    wait_for(lambda: wrote)
    flusher.close()


def wait_for(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


# -- Ctrl-C -----------------------------------------------------------------------------------


INTERRUPTED = """
import random, signal, sys, threading
import bequeath as bq
study = bq.Study({"x": bq.uniform(0, 1)}, folder=sys.argv[1], tuner="Random", seed=1)
study.tell(study.ask(), 0)
told, rng, interrupts = {0: 0}, random.Random(1), 0
armed = threading.Event()
def disturb():
    while armed.wait():
        armed.clear()
        threading.Event().wait(rng.uniform(0, 0.003))
        signal.raise_signal(signal.SIGINT)
threading.Thread(target=disturb, daemon=True).start()
while interrupts < 100:
    try:
        armed.set()  # in here: the next one may come at once
        while True:
            t = study.ask()
            told[t.id] = interrupts
            study.tell(t, interrupts)
    except KeyboardInterrupt:
        interrupts += 1
study.close()
for each in study.trials():
    assert each.value is None or each.value == told[each.id], each
print(sum(each.value is not None for each in study.trials()))
"""


def test_ctrl_c_at_any_moment_leaves_a_whole_study(tmp_path: Path) -> None:
    """Mutation: the exception is raised in the middle of a commit, of which the rest is lost."""
    folder = tmp_path / "study"
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(folder)], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 20
    assert ExperimentHandle(folder).verify().ok
    with bq.Study(folder=folder) as again:
        again.tell(again.ask(), 1)


def test_ctrl_c_waits_for_its_turn_and_comes_again_at_once() -> None:
    turn, reached = StudyTurn(), []

    def work(interrupts: int) -> None:
        with turn, turn:
            for _ in range(interrupts):
                signal.raise_signal(signal.SIGINT)
            reached.append(interrupts)

    for interrupts in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            work(interrupts)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert reached == [1]
    work(0)


# -- folders ----------------------------------------------------------------------------------


def test_folders_that_can_be_none(tmp_path: Path) -> None:
    """One error each, and no traceback of the file system."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for folder, sentence in (
        ("", "no folder can be ''"),
        (7, "no folder can be 7"),
        (b"x", "no folder can be b'x'"),
        ("a\0b", "no folder can be"),
        ("~nobody-of-this-name/x", "no folder can be '~nobody"),
        (tmp_path / "file", "cannot be the folder of a study: Not a directory"),
        (tmp_path / "file" / "below", "is not a folder"),
        (tmp_path / "link", "is a link, and no study lies behind it"),
        (tmp_path / "dangling", "is a link, and no study lies behind it"),
        (tmp_path / ("n" * 300), "File name too long"),
        ("/proc/study", "cannot make the experiment's folder"),
    ):
        with pytest.raises(bq.BequeathError, match=sentence):
            bq.Study(SPACE, folder=folder)  # type: ignore[arg-type]
    with bq.Study(SPACE, folder=tmp_path / "real", tuner="Random") as made:
        made.tell(made.ask(), 1)
    (tmp_path / "way").symlink_to(tmp_path / "real")
    with bq.Study(folder=tmp_path / "way") as again:
        assert len(again.trials()) == 1


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"tuner_args": {"n_startup_trials": 7}}, "made with tuner_args=.*5.*opened with.*7"),
        ({"tuner_args": {}}, "made with tuner_args"),
        ({"assessor": "Medianstop"}, "made with assessor=None, and is opened with 'Medianstop'"),
        ({"tuner_args": 5}, "tuner_args must be a mapping"),
    ],
)
@pytest.mark.parametrize("space", [SPACE, None])
def test_other_arguments_than_those_of_the_study_are_refused(
    tmp_path: Path, space: Any, given: dict[str, Any], sentence: str
) -> None:
    """Mutation: they are passed over without a word."""
    args = {"n_startup_trials": 5}
    bq.Study(space, folder=tmp_path / "study", tuner_args=args, seed=1).close()
    with pytest.raises(UserError, match=sentence):
        bq.Study(folder=tmp_path / "study", **given)
    bq.Study(space, folder=tmp_path / "study", tuner="tpe", tuner_args=args).close()


# -- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize("trial", [True, 1.0, "1", None, [1], {}])
def test_what_is_no_trial_is_refused(study: bq.Study, trial: Any) -> None:
    """Mutation: True is trial 1."""
    study.ask()
    study.ask()
    calls: list[Callable[[], object]] = [lambda: study.tell(trial, 1), lambda: study.fail(trial)]
    if trial is not None:
        calls.append(lambda: study.ask(parent=trial))
    for call in calls:
        with pytest.raises(UserError, match="no trial is called"):
            call()
    assert len(study.unfinished) == 2
    study.tell(np.int64(1), 1)  # type: ignore[arg-type]


def test_a_parent_of_another_study_is_refused(tmp_path: Path, study: bq.Study) -> None:
    """Mutation: its number is looked up among the trials of this one."""
    with bq.Study(SPACE, folder=tmp_path / "other", tuner="Random") as other:
        for each in (study, other):
            t = each.ask()
            t.save_weights({"w": np.zeros(2)})
            each.tell(t, 1)
        with pytest.raises(UserError, match="belongs to another study"):
            study.ask(parent=t)


@pytest.mark.parametrize(
    "value",
    [
        10**400,
        10**5000,
        {"default": 10**400},
        {"default": 1, "\ud800": 2},
        {"default": 1, "a": "\ud800"},
    ],
    ids=["large", "huge", "default", "key", "text"],
)
def test_results_that_json_cannot_hold_are_refused(study: bq.Study, value: Any) -> None:
    t = study.ask()
    with pytest.raises(InvalidMetric):
        study.tell(t, value)
    study.tell(t, 2**70)


@pytest.mark.parametrize("step", ["1", True, 0.5, float("nan")])
def test_steps_are_whole_numbers(study: bq.Study, step: Any) -> None:
    t = study.ask()
    with pytest.raises(UserError, match="a step is a whole number"):
        t.report(0.5, step)
    t.report(0.5, np.int64(3))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="has reported step 3, and reports 3 now"):
        t.report(0.5, 3)


@pytest.mark.parametrize(
    "name", ["", 7, ["x"], "save_path", "restore_path", "_needs", "_name", "_constraints", "\udfff"]
)
def test_names_that_no_parameter_can_have(by_run: bq.Study, name: Any) -> None:
    """Mutation: the trial is computed first, and can then be neither told nor failed."""
    t = by_run.ask()
    with pytest.raises(UserError, match=r"the name .* (is|has|holds)"):
        t.suggest_float(name, 0, 1)
    for fine in ("a.b", "ü", "a b", "x" * 10_000, "'\"\n"):
        t.suggest_float(fine, 0, 1)
    by_run.tell(t, 1)
    by_run.close()
    with bq.Study(folder=by_run.folder) as again:
        assert len(again.trials()[0].parameters) == 5
        assert 0 <= again.ask().suggest_float("a.b", 0, 1) <= 1


@pytest.mark.parametrize("step", [0, -0.1, float("nan"), float("inf"), "1", True, 1e-300])
def test_steps_of_parameters_that_are_none(by_run: bq.Study, step: Any) -> None:
    """Mutation: a division by zero, or bounds the wrong way round that hold a number."""
    t = by_run.ask()
    with pytest.raises(UserError, match="'x' has a step of"):
        t.suggest_float("x", 0, 1, step=step)
    with pytest.raises(bq.SpaceError):
        t.suggest_float("x", 1, 0, step=0.1)
    with pytest.raises(bq.SpaceError):
        t.suggest_float("x", float("inf"), float("inf"))
    with pytest.raises(bq.SpaceError):
        t.suggest_float("x", "a", "a")  # type: ignore[arg-type]
    assert t.parameters == {}


def test_what_was_suggested_is_suggested_again_by_a_later_program(by_run: bq.Study) -> None:
    """Mutation: tuples, numbers of numpy or one number alone are other bounds after a resume."""

    def suggest(t: bq.StudyTrial) -> float:
        t.suggest_categorical("pair", [(1, 2), (3, 4)])
        t.suggest_categorical("mixed", [None, True, 1.5, "a"])
        t.suggest_float("numpy", np.float64(0.1), np.float64(0.7))
        t.suggest_float("one", 2, 2)
        t.suggest_float("step", 0, 1, step=5)
        t.suggest_int("n", 1, 1)
        return t.suggest_float("whole", -10, 10)

    by_run.optimize(suggest, n_trials=2)
    by_run.close()
    with bq.Study(folder=by_run.folder) as again:
        again.optimize(suggest, n_trials=2)
        assert len(again.trials()) == 4


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((len, None), "n_trials must be a whole number"),
        ((len, 2.5), "n_trials must be a whole number"),
        ((len, -1), "n_trials must be a whole number"),
        ((7, 1), "trial must be a function"),
        ((len, 1, 7), "catch names 7"),
        ((len, 1, [ValueError, "x"]), "catch names 'x'"),
        ((len, 1, KeyboardInterrupt), "catch names"),
    ],
)
def test_calls_of_optimize_that_are_none(
    study: bq.Study, arguments: tuple[Any, ...], sentence: str
) -> None:
    function, many, *catch = arguments
    with pytest.raises(UserError, match=sentence):
        study.optimize(function, many, **({"catch": catch[0]} if catch else {}))
    assert study.trials() == []


def test_exceptions_may_be_listed_and_a_grid_that_is_through_is_no_error(tmp_path: Path) -> None:
    """Mutation: a list is no tuple, which ``except`` finds out when the trial has raised."""

    def bad(t: bq.StudyTrial) -> float:
        raise ValueError("no")

    space = {"x": bq.choice(1, 2, 3)}
    with bq.Study(space, folder=tmp_path / "study", tuner="GridSearch") as study:
        study.optimize(bad, 10, catch=[ValueError])
        assert [t.outcome for t in study.trials()] == ["failed"] * 3
        with pytest.raises(bq.NoMoreTrialError):
            study.ask()


def test_a_study_that_grows_names_what_was_asked_for(by_run: bq.Study) -> None:
    """Mutation: trials are unfinished from their first report on only."""
    t = by_run.ask()
    assert [each.id for each in by_run.unfinished] == [t.id]
    by_run.tell(t, 1)
    assert by_run.unfinished == []


def test_a_limit_that_a_command_has_set_is_named(study: bq.Study) -> None:
    """Mutation: more and more slots are tried, for ever."""
    study.tell(study.ask(), 1)
    study.close()
    ExperimentHandle(study.folder).update("maxTrialNumber", 2)
    with bq.Study(folder=study.folder) as again:
        again.tell(again.ask(), 1)
        with pytest.raises(UserError, match="begins no further trial"):
            again.ask()


@pytest.mark.parametrize("reason", [ValueError("no"), 5, None, "\ud800", "x" * 1_000_000])
def test_a_reason_may_be_anything(study: bq.Study, reason: Any) -> None:
    """Mutation: what a journal cannot hold is in the way of all that follows."""
    study.fail(study.ask(), reason)
    study.tell(study.ask(), 1)
    study.close()
    handle = ExperimentHandle(study.folder)
    assert handle.verify().ok
    assert [each.outcome for each in handle.trials() if each.over] == ["failed", "succeeded"]
    assert len(handle.trials()[0].error or "") <= 10_000


def test_a_space_that_could_not_be_written_is_written_with_the_next_trial(
    by_run: bq.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: it counts as written, and the bounds are forgotten with the program."""
    t = by_run.ask()
    t.suggest_float("x", 0, 1)
    with monkeypatch.context() as full:
        full.setattr(ExperimentFolder, "write_config", raise_full)
        with pytest.raises(UserError, match="cannot be written down"):
            by_run.tell(t, 1)
    by_run.tell(t, 1)
    by_run.close()
    assert list(ExperimentHandle(by_run.folder).config().search_space) == ["x"]
    with bq.Study(folder=by_run.folder) as again, pytest.raises(UserError, match="in this study"):
        again.ask().suggest_float("x", 0, 2)


def raise_full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
