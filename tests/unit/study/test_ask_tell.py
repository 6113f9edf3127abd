"""Studies: ask and tell over a real record, opened again, told nonsense."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bequeath as bq
from dispatcher.core.transitions import user
from dispatcher.errors import ExperimentBusy, UserError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.queries import ExperimentReader, experiment_summary
from dispatcher.study import record
from trial_runtime.api_errors import InvalidMetric

EVOLUTION = {"population_size": 3, "sample_size": 2}
SPACE = {"x": bq.uniform(-10, 10), "n": bq.int(1, 4)}


def study_in(folder: Path, space: Any = None, **more: Any) -> bq.Study:
    more = {"tuner": "Random", "seed": 1, **more} if not (folder / "study").exists() else more
    return bq.Study(space, folder=folder / "study", **more)


def loss(parameters: dict[str, Any]) -> float:
    return float((parameters["x"] - 2) ** 2)


@pytest.fixture
def study(tmp_path: Path) -> Any:
    with study_in(tmp_path, SPACE, optimize="minimize") as made:
        yield made


def test_what_was_told_is_an_experiment(study: bq.Study) -> None:
    """Mutation: the end of a trial is taken before its row is written, which loses parameters."""
    told = {}
    for _ in range(6):
        t = study.ask()
        told[t.id] = loss(t.parameters)
        study.tell(t, told[t.id])
    assert {each.id: each.value for each in study.trials()} == told
    best = study.best()
    assert best is not None
    assert best.value == min(told.values())
    assert loss(best.parameters) == best.value
    study.close()
    handle = ExperimentHandle(study.folder)
    assert handle.status().status == "stopped"
    assert handle.verify().ok
    assert all(row["parameters.x"] is not None for row in handle.rows() if row["value"])


def test_many_may_be_asked_for_before_one_is_told(study: bq.Study) -> None:
    asked = [study.ask() for _ in range(5)]
    assert [t.id for t in asked] == [0, 1, 2, 3, 4]
    assert [t.id for t in study.unfinished] == [0, 1, 2, 3, 4]
    for t in reversed(asked):
        study.tell(t.id, t.id)
    assert study.unfinished == []
    assert study.ask().id not in range(5)


def test_each_trial_of_thousands_costs_the_same_to_ask_for(
    study: bq.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand that nobody has told took minutes. Mutation: for each one more, what all that
    run hold is added up anew."""
    counted: list[Any] = []
    monkeypatch.setattr(user, "recount", lambda *given: counted.append(given))
    for _ in range(20):
        study.ask()
    assert counted == []


def test_a_study_goes_on_where_it_was(tmp_path: Path) -> None:
    """The tuner sees the results of before: its next proposals are those of one long study."""
    whole: list[Any] = []
    with bq.Study(SPACE, folder=tmp_path / "whole", seed=3, optimize="minimize") as study:
        for _ in range(24):
            t = study.ask()
            whole.append(t.parameters)
            study.tell(t, loss(t.parameters))
    parts: list[Any] = []
    for part in range(3):
        more: Any = {"space": SPACE, "seed": 3, "optimize": "minimize"} if part == 0 else {}
        with bq.Study(folder=tmp_path / "parts", **more) as study:
            for _ in range(8):
                t = study.ask()
                parts.append(t.parameters)
                study.tell(t, loss(t.parameters))
    assert parts == whole


def test_what_was_asked_for_can_be_told_by_a_later_program(tmp_path: Path) -> None:
    with study_in(tmp_path, SPACE) as study:
        first, second = study.ask(), study.ask()
    with study_in(tmp_path) as study:
        assert [t.parameters for t in study.unfinished] == [first.parameters, second.parameters]
        study.tell(1, 0.5)
        assert study.ask().id > 1
        with pytest.raises(UserError, match="trial 1 is over already: succeeded"):
            study.tell(1, 0.5)
        study.tell(study.unfinished[0], 0.25)
    with study_in(tmp_path) as study:
        assert {t.id: t.value for t in study.trials() if t.value} == {0: 0.25, 1: 0.5}


def test_optimize_runs_again_what_a_killed_program_left(tmp_path: Path) -> None:
    """With the same parameters, as another attempt; results told before are not lost."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal, sys\n"
        "import bequeath as bq\n"
        "def trial(t):\n"
        "    x = t.suggest_float('x', 0, 1)\n"
        "    t.report(x)\n"
        "    print(t.id, t.attempt, x, flush=True)\n"
        "    if t.id == 3 and t.attempt == 1:\n"
        "        study.flush()\n"  # what takes milliseconds is written together
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return x\n"
        f"study = bq.Study(folder={str(tmp_path / 'study')!r}, seed=5)\n"
        "study.optimize(trial, n_trials=4)\n"
    )
    outputs = []
    for code in (-signal.SIGKILL, 0):
        done = subprocess.run(
            [sys.executable, program], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        outputs.append([line.split() for line in done.stdout.splitlines()])
    assert outputs[0][3][:2] == ["3", "1"]
    assert outputs[1][0][:2] == ["3", "2"]
    assert outputs[1][0][2] == outputs[0][3][2]
    assert [line[0] for line in outputs[0][:3]] == ["0", "1", "2"]
    with bq.Study(folder=tmp_path / "study") as study:
        values = {t.id: t.value for t in study.trials()}
        assert len(values) == 7
        assert all(value is not None for value in values.values())
    assert ExperimentHandle(tmp_path / "study").verify().ok


@pytest.mark.parametrize(
    "value, sentence",
    [(float("nan"), "finite"), (float("inf"), "finite"), ("good", "number"), (None, "number")],
)
def test_a_result_that_is_none_leaves_the_trial_open(
    study: bq.Study, value: Any, sentence: str
) -> None:
    t = study.ask()
    with pytest.raises(InvalidMetric, match=sentence):
        study.tell(t, value)
    study.tell(t, 1)
    assert study.trials()[0].value == 1


def test_wrong_trials_are_refused_by_number(study: bq.Study, tmp_path: Path) -> None:
    t = study.ask()
    study.tell(t, 1)
    with pytest.raises(UserError, match="trial 0 is over already: succeeded"):
        study.tell(t, 2)
    with pytest.raises(UserError, match="no trial 99: asked for were 0 to 0"):
        study.tell(99, 2)
    with pytest.raises(UserError, match="trial 0 is over already"):
        t.report(1)
    with (
        study_in(tmp_path / "other", SPACE) as other,
        pytest.raises(UserError, match="another study"),
    ):
        other.tell(study.ask(), 1)


def test_a_trial_that_failed_is_no_result(study: bq.Study) -> None:
    study.fail(study.ask(), "the cat sat on it")
    (trial,) = study.trials()
    assert (trial.outcome, trial.value) == ("failed", None)
    assert trial.error == "the cat sat on it"


def test_one_program_leads_a_study(tmp_path: Path, study: bq.Study) -> None:
    with pytest.raises(ExperimentBusy, match=f"process {os.getpid()}"):
        study_in(tmp_path)
    study.close()
    with pytest.raises(UserError, match="closed"):
        study.ask()
    with study_in(tmp_path) as again:
        again.ask()


def test_a_fork_may_not_tell(study: bq.Study) -> None:
    """Mutation: a fork writes the same journal, or closes it at its end."""
    t = study.ask()
    child = os.fork()
    if child == 0:
        try:
            study.tell(t, 1)
        except UserError as error:
            study.close()
            os._exit(0 if "led by process" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    study.tell(t, 2)
    assert study.trials()[0].value == 2


@pytest.mark.parametrize(
    "wish, sentence",
    [
        ({"tuner": "TPE"}, "made with tuner='Random', and is opened with 'TPE'"),
        ({"optimize": "maximize"}, "made with optimize='minimize'"),
        ({"seed": 2}, "made with seed=1"),
        ({"space": {"y": bq.uniform(0, 1)}}, "made with the space"),
    ],
)
def test_a_study_is_opened_as_it_was_made(
    study: bq.Study, wish: dict[str, Any], sentence: str
) -> None:
    study.close()
    with pytest.raises(UserError, match=sentence):
        bq.Study(folder=study.folder, **wish)


def test_a_folder_with_other_things_is_no_study(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty, and no study"):
        bq.Study(SPACE, folder=tmp_path)
    with pytest.raises(UserError, match=r"cannot be called 'a b'"):
        bq.Study(SPACE, folder=tmp_path / "a b")
    with pytest.raises(UserError, match="PBT cannot suggest parameters one by one"):
        bq.Study(folder=tmp_path / "pbt", tuner="PBT")


def test_a_study_that_is_open_already_says_what_frees_it(study: bq.Study) -> None:
    """Mutation: the error advises to stop its head, or to take over, which a study refuses."""
    with pytest.raises(ExperimentBusy, match="already leads this experiment") as raised:
        bq.Study(folder=study.folder)
    assert raised.value.hint == "call close() of the study there, or end that program"


def test_no_head_leads_a_study(study: bq.Study) -> None:
    study.close()
    with pytest.raises(UserError, match=r"go on in Python: bq.Study\(folder="):
        bq.Experiment.open(study.folder).start()
    with bq.Study(folder=study.folder) as again:
        again.ask()


def test_children_inherit_weights(study: bq.Study) -> None:
    """Mutation: the digest of the parent is not the one that the store checks."""
    parent = study.ask()
    with pytest.raises(UserError, match="trial 0 has no weights to start from: it was not told"):
        study.ask(parent=parent)
    parent.save_weights({"w": np.arange(4.0)})
    study.tell(parent, 1)
    child = study.ask(parent=parent)
    assert child.parent == parent.id
    np.testing.assert_array_equal(child.load_weights()["w"], np.arange(4.0))
    child.save_weights({"w": np.arange(4.0), "more": np.zeros(2)})
    study.tell(child, 2)
    assert [(t.id, t.parent) for t in study.trials()] == [(0, None), (1, 0)]
    barren = study.ask()
    study.tell(barren, 3)
    with pytest.raises(UserError, match="it saved none"):
        study.ask(parent=barren)
    with pytest.raises(UserError, match="there is none"):
        study.ask(parent=77)


def test_what_is_enqueued_comes_first(tmp_path: Path) -> None:
    """Before the first trial, and after the study was opened again."""
    with study_in(tmp_path, SPACE) as study:
        for n in (1, 2, 3):
            study.enqueue({"x": float(n), "n": n})
        with pytest.raises(UserError, match="x is 11, and may be uniform"):
            study.enqueue({"x": 11, "n": 1})
        with pytest.raises(UserError, match="it has no 'n'"):
            study.enqueue({"x": 1})
        t = study.ask()
        assert t.parameters == {"x": 1.0, "n": 1}
        study.tell(t, 1)
    with study_in(tmp_path) as study:
        left = [study.ask() for _ in range(2)]
        assert [t.parameters["n"] for t in left] == [2, 3]
        assert study.ask().parameters["x"] not in (1.0, 2.0, 3.0)


def test_an_assessor_ends_trials_early(tmp_path: Path) -> None:
    with study_in(tmp_path, SPACE, assessor="Medianstop") as study:
        for level in (10.0, 11.0, 12.0):
            t = study.ask()
            for step in range(3):
                t.report(level, step)
                assert not t.should_stop()
            study.tell(t, level)
        bad = study.ask()
        for step in range(9):
            bad.report(1.0, step)
            if bad.should_stop():
                break
        assert bad.should_stop()
        with pytest.raises(UserError, match="has reported step"):
            bad.report(1.0, 0)
        study.tell(bad, 1.0)
        assert study.trials()[-1].outcome == "stopped early"
        assert study.trials()[-1].value == 1.0


def test_a_tuner_may_choose_the_parent(tmp_path: Path) -> None:
    """Mutation: the restore path of the tuner's parameters is not taken for a parent."""
    parents = []
    with study_in(tmp_path, SPACE, tuner="RegularizedEvolution", tuner_args=EVOLUTION) as study:
        for n in range(8):
            t = study.ask()
            parents.append(t.parent)
            if t.parent is not None:
                assert t.load_weights()["n"] == t.parent
            t.save_weights({"n": t.id, "w": np.zeros(2)})
            study.tell(t, n)
    assert any(parent is not None for parent in parents)


def final_of(study: bq.Study, trial: int) -> Any:
    """What another process reads."""
    path = study.folder / "journal.sqlite"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
        found = reader.execute("SELECT final FROM trials WHERE id = ?", (trial,)).fetchone()
    return None if found is None or found[0] is None else json.loads(found[0])


def test_a_result_is_in_the_store_when_tell_returns(
    study: bq.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of trials that take longer than commits are put together for."""
    monkeypatch.setattr(record, "TOGETHER_S", 0.0)
    for n in range(3):
        study.tell(study.ask(), n + 0.5)
        assert final_of(study, n) == n + 0.5


def test_what_took_long_is_in_the_store_when_tell_returns(study: bq.Study) -> None:
    """Mutation: of two long trials that end together, a kill takes the second one's result."""
    together = [study.ask() for _ in range(9)]
    for n, trial in enumerate(together):
        trial.began -= 3600
        study.tell(trial, n + 0.5)
        assert final_of(study, n) == n + 0.5


def test_what_is_put_together_is_written_a_moment_later(
    study: bq.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the last results of a burst wait for the next question."""
    monkeypatch.setattr(record, "TOGETHER_S", 1e9)
    for n in range(20):
        study.tell(study.ask(), n + 0.5)
    deadline = time.monotonic() + 30
    while final_of(study, 19) is None:
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    assert [final_of(study, n) for n in range(20)] == [n + 0.5 for n in range(20)]
    study.close()
    assert ExperimentHandle(study.folder).verify().ok


def test_any_thread_may_ask_and_tell(study: bq.Study) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: study.tell(study.ask(), n), range(40)))
    assert sorted(t.value or 0 for t in study.trials()) == list(range(40))
    study.close()
    assert ExperimentHandle(study.folder).verify().ok


def test_a_study_begins_in_a_folder_whatever_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the folder of the program is measured like code that is sent. That takes seconds in
    a home folder, and refused studies in one with many files."""
    (tmp_path / ".bequeathignore").write_bytes(b"\xff\n")  # not to be read
    monkeypatch.chdir(tmp_path)
    with bq.Study({"x": bq.uniform(0, 1)}, folder=tmp_path / "study", tuner="Random") as study:
        study.tell(study.ask(), 1.0)
    assert study.best() is not None


@pytest.mark.parametrize("tuner", ["RegularizedEvolution", "MorphingEvolution"])
def test_a_study_whose_trials_hand_nothing_on_says_so_once(tuner: str, tmp_path: Path) -> None:
    """Evolution makes no trial without weights a parent: without a word it was random search."""
    args: dict[str, Any] = {"population_size": 2, "sample_size": 1}
    if tuner == "MorphingEvolution":
        args["blocks"] = [{"width": 8, "kernel": 0}]
    space = {"x": bq.uniform(0, 1)}
    with bq.Study(space, folder=tmp_path / "s", tuner=tuner, tuner_args=args) as s:
        with pytest.warns(
            UserWarning, match="trial 0 has saved no weights.*save_weights"
        ) as warned:
            s.tell(s.ask(), 1.0)
        for _ in range(3):
            s.tell(s.ask(), 1.0)  # another warning would be an error
    assert [each.filename for each in warned] == [__file__]
    assert ("'inherit': False" in str(warned[0].message)) == (tuner == "RegularizedEvolution")
    with ExperimentReader.open(s.folder) as reader:
        assert experiment_summary(reader).unsaved == 4


@pytest.mark.parametrize("tuner", ["Hyperband", "BOHB"])
def test_a_search_by_promotion_without_weights_ends_with_the_way_out(
    tuner: str, tmp_path: Path
) -> None:
    """Mutations: a warning that it were random search; advice for authors of tuners."""
    space = {"x": bq.uniform(0, 1)}
    args = {"max_budget": 3, "eta": 3}
    with (
        bq.Study(space, folder=tmp_path / "s", tuner=tuner, tuner_args=args) as s,
        pytest.warns(UserWarning, match=f"without parents {tuner} ends at its first promotion"),
        pytest.raises(UserError, match="no trial has saved weights") as raised,
    ):
        s.optimize(lambda t: t.parameters["x"], n_trials=9)
    assert "tuner_args={'inherit': False}" in raised.value.hint
    args |= {"inherit": False}
    with bq.Study(space, folder=tmp_path / "t", tuner=tuner, tuner_args=args) as s:
        s.optimize(lambda t: t.parameters["x"], n_trials=9)


def test_a_study_that_hands_weights_on_says_nothing(tmp_path: Path) -> None:
    args = {"population_size": 2, "sample_size": 1}
    space = {"x": bq.uniform(0, 1)}
    with bq.Study(space, folder=tmp_path, tuner="RegularizedEvolution", tuner_args=args) as study:
        for _ in range(4):
            trial = study.ask()
            trial.save_weights({"w": np.zeros(2)})
            study.tell(trial, 1.0)
        assert trial.parent is not None
    with ExperimentReader.open(study.folder) as reader:
        assert experiment_summary(reader).unsaved == 0
