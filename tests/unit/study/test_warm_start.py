"""Results of other searches: which are taken, and what is told of the others."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

import bequeath as bq
from dispatcher.errors import UserError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.queries.records import WEIGHT_PATHS
from dispatcher.study.proposing import StudyTuner
from dispatcher.study.record import StudyRecord
from dispatcher.study.warm_start import fitting, read_results
from tuners.space import as_json, parse

SPACE = {"x": bq.uniform(0, 10), "kind": bq.choice("a", "b")}
WANTED = {(float(n), "ab"[n % 2], float(n * n)) for n in range(6)}


def study_in(folder: Path, space: Any = SPACE, **more: Any) -> bq.Study:
    return bq.Study(space, folder=folder / "new", seed=1, optimize="minimize", **more)


def seen(study: bq.Study) -> set[tuple[Any, ...]]:
    """What the sampler of a study that is opened again has in its memory."""
    study.close()
    place = ExperimentFolder(study.folder)
    config = ExperimentHandle(study.folder).config()
    record = StudyRecord(place, config)
    try:
        tuner = StudyTuner(config, place, record.state)
        tuner.recall(record.calls, record.tuner_state)
        sampler: Any = tuner.tuner if tuner.by_run is None else tuner.by_run.sampler
        return {
            (t.params["x"], t.params["kind"], t.value)
            for t in sampler.study.trials
            if t.value is not None
        }
    finally:
        record.close()


@pytest.fixture
def old(tmp_path: Path) -> bq.Study:
    """A study of ours with six results and a failure."""
    with bq.Study(SPACE, folder=tmp_path / "old", tuner="Random", optimize="minimize") as study:
        for n in range(6):
            study.enqueue({"x": float(n), "kind": "ab"[n % 2]})
        for n in range(6):
            study.tell(study.ask(), {"default": n * n, "size": 3})
        study.fail(study.ask(), "no")
    return study


@pytest.mark.parametrize("by_run", [False, True])
def test_from_another_study(tmp_path: Path, old: bq.Study, by_run: bool) -> None:
    """Itself and its folder. Without a space, the sampler gets them once it knows the names."""
    study = study_in(tmp_path, None if by_run else SPACE)
    report = study.warm_start(old.folder if by_run else old)
    assert (report.taken, report.left_out) == (6, ("trial 6: it has no result",))
    assert str(report) == "6 results of old were taken, 1 were not: trial 6: it has no result"
    if by_run:
        study.optimize(
            lambda t: (
                t.suggest_float("x", 0, 10)
                + ("ab".index(t.suggest_categorical("kind", ["a", "b"])))
            ),
            n_trials=1,
        )
    assert seen(study) >= WANTED
    assert len(study_trials(study)) == by_run


def study_trials(study: bq.Study) -> list[Any]:
    return [each for each in ExperimentHandle(study.folder).trials() if each.state != "open"]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_from_our_export(tmp_path: Path, old: bq.Study, form: str) -> None:
    file = tmp_path / f"old.{form}"
    handle = ExperimentHandle(old.folder)
    file.write_text(handle.csv() if form == "csv" else json.dumps(handle.rows()))
    study = study_in(tmp_path)
    assert study.warm_start(file).taken == 6
    assert seen(study) == WANTED


@pytest.mark.parametrize("form", ["csv", "json"])
def test_names_with_dots_come_back_from_our_export(tmp_path: Path, form: str) -> None:
    """Also beside a nested one that is called alike. Mutation: dots of names and dots between names
    are one."""
    inner = {"lr": bq.uniform(0, 1), "a`b": bq.uniform(0, 1)}
    space = {"opt.lr": bq.uniform(0, 1), "opt": bq.choice({"sgd": inner, "none": {}})}
    with bq.Study(space, folder=tmp_path / "old", tuner="Random", seed=3) as study:
        for n in range(8):
            study.tell(study.ask(), n)
        given = [each.named_parameters for each in study.trials()]
    assert any(isinstance(each["opt"], dict) and len(each["opt"]) == 3 for each in given)
    handle = ExperimentHandle(tmp_path / "old")
    file = tmp_path / f"old.{form}"
    file.write_text(handle.csv() if form == "csv" else json.dumps(handle.rows()))
    found = read_results(file, {}, None, None).results
    wanted = [{k: v for k, v in each.items() if k not in WEIGHT_PATHS} for each in given]
    assert [each.parameters for each in found if each.value is not None] == wanted


def test_nothing_and_quotes_come_back_from_a_csv(tmp_path: Path) -> None:
    """Mutations: a parameter that is None is missing; a quote of its own is taken for ours."""
    space = {"depth": bq.choice(None, 3), "name": bq.choice("'a", "=b")}
    with bq.Study(space, folder=tmp_path / "old", tuner="GridSearch") as study:
        for n in range(4):
            study.tell(study.ask(), n)
    file = tmp_path / "old.csv"
    file.write_text(ExperimentHandle(tmp_path / "old").csv())
    new = bq.Study(space, folder=tmp_path / "new", tuner="Random")
    report = new.warm_start(file)
    assert (report.taken, [each for each in report.left_out if "no result" not in each]) == (4, [])
    lacks = bq.Study({**space, "w": bq.choice(1, 2)}, folder=tmp_path / "lacks", tuner="Random")
    assert "it has no 'w'" in str(lacks.warm_start(file))


def test_texts_that_read_as_something_else_come_back_from_a_csv(tmp_path: Path) -> None:
    """Mutations: ``"1"`` is a number, ``"null"`` and ``""`` are missing, so is a branch ``"2"``."""
    kinds = {"_name": "2", "width": {"_type": "choice", "_value": ["16", 32]}}
    space = {
        "text": bq.choice("1", "null", "[1]", "true", "a"),
        "empty": bq.choice("", "b"),
        "both": bq.choice("1", 1),
        "kind": {"_type": "choice", "_value": [kinds, {"_name": "none"}]},
    }
    given = []
    with bq.Study(space, folder=tmp_path / "old", tuner="Random", seed=3) as study:
        for n in range(30):
            trial = study.ask()
            given.append(trial.parameters)
            study.tell(trial, n)
    file = tmp_path / "old.csv"
    file.write_text(ExperimentHandle(tmp_path / "old").csv())
    rows, report = fitting(read_results(file, {}, None, None), parse(as_json(space)), ())
    assert report.taken == 30
    for row, wanted in zip(rows, given, strict=True):
        both = row["parameter"].pop("both")
        assert both == 1 or wanted["both"] == "1"  # what fits as it is stays
        others = {k: v for k, v in wanted.items() if k not in {"both", *WEIGHT_PATHS}}
        assert row["parameter"] == others


def test_from_nnis_export(tmp_path: Path) -> None:
    file = tmp_path / "nni.json"
    rows = [
        {"parameter": {"x": x, "kind": kind}, "value": json.dumps({"default": value})}
        for x, kind, value in WANTED
    ]
    file.write_text(json.dumps(rows))
    study = study_in(tmp_path)
    assert study.warm_start(file).taken == 6
    assert seen(study) == WANTED


def optunas(storage: Any, name: str = "theirs") -> Any:
    theirs = optuna.create_study(storage=storage, study_name=name, direction="minimize")
    distributions = {
        "x": optuna.distributions.FloatDistribution(0, 10),
        "kind": optuna.distributions.CategoricalDistribution(["a", "b"]),
    }
    for x, kind, value in sorted(WANTED):
        params = {"x": x, "kind": kind}
        made = optuna.create_trial(params=params, distributions=distributions, value=value)
        theirs.add_trial(made)
    return theirs


@pytest.mark.parametrize("kind", ["study", "sqlite", "url", "journal"])
def test_from_optuna(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "theirs.db"
    storage: Any = f"sqlite:///{file}"
    if kind == "journal":
        storage = JournalStorage(JournalFileBackend(str(file)))
    theirs = optunas(storage)
    source: Any = {"study": theirs, "url": storage}.get(kind, file)
    study = study_in(tmp_path)
    report = study.warm_start(source)
    assert str(report) == "6 results of Optuna's 'theirs' were taken"
    assert seen(study) == WANTED


def test_optunas_storage_with_several_studies_wants_a_name(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'theirs.db'}"
    optunas(storage)
    optunas(storage, "others")
    with study_in(tmp_path) as study:
        with pytest.raises(UserError, match="has several studies: '"):
            study.warm_start(storage)
        with pytest.raises(UserError, match="has no study 'x'"):
            study.warm_start(storage, study_name="x")
        assert study.warm_start(storage, study_name="others").taken == 6


def test_from_ray_tune(tmp_path: Path) -> None:
    """A folder a trial, with its parameters and a line a report, as Ray 2 writes them."""
    for number, (x, kind, value) in enumerate(sorted(WANTED)):
        folder = tmp_path / "ray" / f"trainable_{number}"
        folder.mkdir(parents=True)
        (folder / "params.json").write_text(json.dumps({"x": x, "kind": kind}))
        reports = [{"loss": 99.0, "training_iteration": 1}, {"loss": value, "pid": 7}]
        (folder / "result.json").write_text("".join(f"{json.dumps(r)}\n" for r in reports))
    study = study_in(tmp_path)
    with pytest.raises(UserError, match="with the metrics loss"):
        study.warm_start(tmp_path / "ray")
    assert study.warm_start(tmp_path / "ray", metric="loss").taken == 6
    with pytest.raises(UserError, match="no result there has the metric 'los'") as raised:
        study.warm_start(tmp_path / "ray", metric="los")
    assert "loss" in str(raised.value.hint)
    assert seen(study) == WANTED


def test_what_does_not_fit_is_told_with_its_reason(tmp_path: Path) -> None:
    """Mutation: results of another space are taken without a word."""
    file = tmp_path / "nni.json"
    parameters: list[dict[str, Any]] = [
        {"x": 1.0, "kind": "a"},
        {"x": 11.0, "kind": "a"},
        {"x": 1.0, "kind": "c"},
        {"x": 1.0},
        {"x": 2.0},
        {"x": 1.0, "kind": "a", "more": 1},
    ]
    rows = [{"parameter": each, "value": 1.0} for each in parameters]
    rows.append({"parameter": {"x": 1.0, "kind": "a"}, "value": float("nan")})
    file.write_text(json.dumps(rows))
    with study_in(tmp_path) as study:
        report = study.warm_start(file)
    assert report.taken == 1
    assert report.left_out == (
        "result 2: x is 11.0, and may be uniform(0, 10)",
        "result 3: kind is 'c', and may be choice('a', 'b')",
        "result 4: it has no 'kind'",
        "result 5: it has no 'kind'",
        "result 6: it has 'more', which this space lacks",
        "result 7: its result is nan",
    )
    assert "were taken, 6 were not: result 2: x is" in str(report)
    assert "; 2 (the first is result 4): it has no 'kind'; result 6" in str(report)


def test_a_source_that_is_not_there_says_what_could_be(tmp_path: Path) -> None:
    """Mutation: the hint has a call of Python within quotes of a command."""
    with study_in(tmp_path) as study, pytest.raises(UserError, match="neither a file") as raised:
        study.warm_start(tmp_path / "nothing.csv")
    assert "a file that was exported by bequeath or NNI (.csv, .json)" in raised.value.hint


def test_results_of_trials_that_inherited(tmp_path: Path) -> None:
    """Mutation: where weights lay is a parameter that the new space lacks, and nothing is taken."""
    rows = [
        {"parameter": {"x": 1.0, "kind": "a", "save_path": "3/w", "restore_path": "1/w"},
         "value": 0.5, "id": 3},
    ]  # fmt: skip
    file = tmp_path / "export.json"
    file.write_text(json.dumps(rows))
    with study_in(tmp_path) as study:
        assert study.warm_start(file).taken == 1, study.warm_start(file)


def test_results_outside_of_what_is_suggested_are_named_when_that_is_known(
    tmp_path: Path, old: bq.Study
) -> None:
    with study_in(tmp_path, None) as study:
        study.warm_start(old)
        with pytest.warns(UserWarning, match="2 results of the warm start lie out") as said:
            study.optimize(
                lambda t: (
                    t.suggest_float("x", 0, 3) + len(t.suggest_categorical("kind", ["a", "b"]))
                ),
                n_trials=1,
            )
        assert [each.filename for each in said] == [__file__]


@pytest.mark.parametrize(
    "name, content, sentence",
    [
        ("gone", None, "neither a file nor an experiment"),
        ("a.json", "{", "is not JSON"),
        ("a.json", "{}", "is no list of results"),
        ("a.json", '[{"value": 1}]', "result 1 has no 'parameter'"),
        ("a.csv", "a,b\n1,2\n", "has no columns 'trial' and 'value'"),
        ("folder/file", "", "holds no results"),
    ],
)
def test_what_cannot_be_read_is_refused(
    tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
    with study_in(tmp_path) as study:
        with pytest.raises(UserError, match=sentence):
            study.warm_start(file.parent if name == "folder/file" else file)
        with pytest.raises(UserError, match="no results can be read from 7"):
            study.warm_start(7)


def test_another_direction_is_refused(tmp_path: Path, old: bq.Study) -> None:
    up = bq.Study(SPACE, folder=tmp_path / "up", optimize="maximize")
    with up, pytest.raises(UserError, match="old is to minimize, and this study to maximize"):
        up.warm_start(old)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_an_export_does_not_tell_its_direction(tmp_path: Path, old: bq.Study, form: str) -> None:
    """And the report says so. Mutation: results of the other direction are taken without a word."""
    file = tmp_path / f"old.{form}"
    handle = ExperimentHandle(old.folder)
    file.write_text(handle.csv() if form == "csv" else json.dumps(handle.rows()))
    with bq.Study(SPACE, folder=tmp_path / "up", optimize="maximize") as up:
        report = up.warm_start(file)
    assert report.taken == 6
    assert report.note in str(report)
    assert report.note == (
        f"old.{form} does not tell whether its search was to maximize or to minimize: its results "
        "are taken as results to maximize, as this study has it"
    )
    wanted = {"default": "maximize", "size": "minimize"}
    with bq.Study(SPACE, folder=tmp_path / "both", objectives=wanted) as both:
        assert "results to maximize and to minimize 'size', as" in str(both.warm_start(file))
        with bq.Study(SPACE, folder=tmp_path / "too", objectives=wanted) as other:
            assert other.warm_start(both).note == ""


@pytest.mark.parametrize(
    "name, content, sentence",
    [
        ("a.json", "[" * 100_000, "is not JSON"),
        ("a.json", '[{"parameter": 5, "value": 1}]', "parameters of result 1 are no mapping"),
        ("a.json", '[{"parameter": "{", "value": 1}]', "parameters of result 1 are no mapping"),
        ("a.csv", "trial,value\n1,2,3\n", "trial 1 has more cells than there are columns"),
        ("a.csv", f"trial,value\n1,{'x' * 200_000}\n", "is no CSV that can be read: field larger"),
        ("a.csv", b"trial,value\n1,\xff\n", "is no CSV that can be read"),
        ("a.log", '{"op_code": 0}\n{"op_code": 4, "tri', "Optuna cannot read it"),
        ("a.log", '{"op_code": 99, "worker_id": "x"}\n', "Optuna cannot read it"),
        ("a.db", b"SQLite format 3\0" + b"x" * 5000, "cannot be read: file is not a database"),
    ],
)
def test_hostile_files_are_refused_in_a_sentence(
    tmp_path: Path, name: str, content: str | bytes, sentence: str
) -> None:
    """Mutation: errors of csv, json, Optuna and SQLAlchemy come as they are."""
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with study_in(tmp_path) as study, pytest.raises(UserError, match=sentence):
        study.warm_start(file)


def test_a_store_that_is_not_optunas_is_left_alone(tmp_path: Path, old: bq.Study) -> None:
    """Mutation: Optuna makes its tables in any file of SQLite, such as our own journal."""
    file = old.folder / "journal.sqlite"
    with closing(sqlite3.connect(file)) as there:
        before = list(there.execute("SELECT name FROM sqlite_master ORDER BY 1"))
    with study_in(tmp_path) as study, pytest.raises(UserError, match="no storage of Optuna's"):
        study.warm_start(file)
    with closing(sqlite3.connect(file)) as there:
        assert list(there.execute("SELECT name FROM sqlite_master ORDER BY 1")) == before


def test_a_broken_storage_of_optunas_with_a_strange_name(tmp_path: Path) -> None:
    """Mutations: what follows a question mark is cut off; a damaged page ends in a traceback."""
    file = tmp_path / "a b?c={d}#%.db"
    theirs = optuna.create_study(storage=f"sqlite:///{tmp_path}/plain.db", direction="minimize")
    theirs.add_trial(optuna.trial.create_trial(params={}, distributions={}, value=1.0))
    (tmp_path / "plain.db").rename(file)
    with study_in(tmp_path) as study:
        assert study.warm_start(file).left_out == ("trial 0: it has no 'x'",)
        with closing(sqlite3.connect(file)) as there:
            there.execute("UPDATE trials SET state = 'nonsense'")
            there.commit()
        with pytest.raises(UserError, match="Optuna cannot read it"):
            study.warm_start(file)


def test_half_a_line_of_a_run_that_was_killed(tmp_path: Path) -> None:
    for name, last in (("one", '{"loss": 4.0, "train'), ("two", "")):
        folder = tmp_path / "ray" / name
        folder.mkdir(parents=True)
        (folder / "params.json").write_text('{"x": 2.0, "kind": "a"}')
        (folder / "result.json").write_text(f'{{"loss": 9.0}}\n{{"loss": 5.0}}\n{last}')
    torn = tmp_path / "ray" / "three"
    torn.mkdir()
    (torn / "params.json").write_text('{"x": 2.')
    (torn / "result.json").write_text("[1]\n")
    with study_in(tmp_path) as study:
        report = study.warm_start(tmp_path / "ray", metric="loss")
    assert report.taken == 2
    assert len(report.left_out) == 1


@pytest.mark.parametrize("by_run", [False, True])
def test_numbers_that_nothing_can_hold_are_left_out(tmp_path: Path, by_run: bool) -> None:
    """Mutation: an integer without end is an ``OverflowError``."""
    file = tmp_path / "a.json"
    file.write_text(
        f'[{{"parameter": {{"x": 1.0, "kind": "a"}}, "value": 1{"0" * 400}}},'
        '{"parameter": {"x": 1.0, "kind": "a"}, "value": Infinity},'
        '{"parameter": {"x": 1.0, "kind": "a"}, "value": true},'
        '{"parameter": {"x": 1.0, "kind": "a"}, "value": 2}]'
    )
    with study_in(tmp_path, None if by_run else SPACE) as study:
        report = study.warm_start(file)
        assert report.taken == 1
        assert len(report.left_out) == 3


def test_results_of_one_number_for_several_objectives(tmp_path: Path, old: bq.Study) -> None:
    """Mutation: the tuner raises at the first result that lacks one."""
    wanted = {"default": "minimize", "size": "minimize", "cost": "minimize"}
    with bq.Study(SPACE, folder=tmp_path / "new", objectives=wanted) as study:
        report = study.warm_start(old)
        study.tell(study.ask(), {"default": 1, "size": 1, "cost": 1})
        assert report.taken == 0
        assert "its result has no number 'cost', which is an objective" in str(report)
        study.close()
        other = {"default": "minimize", "size": "maximize", "cost": "minimize"}
        with (
            bq.Study(SPACE, folder=tmp_path / "other", objectives=other) as last,
            pytest.raises(UserError, match="new is to minimize 'size', and this study to maximize"),
        ):
            last.warm_start(study)


def test_ten_thousand_results_wait_for_their_parameters(tmp_path: Path) -> None:
    """Mutation: each is looked for among all, which takes minutes."""
    rows = [{"parameter": {"x": n / 1000, "kind": "a"}, "value": n} for n in range(10_000)]
    rows.append({"parameter": {"y": 1}, "value": 1})
    (tmp_path / "a.json").write_text(json.dumps(rows))
    with study_in(tmp_path, None, tuner="Random") as study:
        assert study.warm_start(tmp_path / "a.json").taken == 10_001
        began = time.process_time()
        study.optimize(
            lambda t: t.suggest_float("x", 0, 10) + len(t.suggest_categorical("kind", ["a"])), 1
        )
        assert time.process_time() - began < 5
