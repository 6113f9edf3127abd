"""Results of other searches: which are taken, and what is told of the others."""

from __future__ import annotations

import json
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
from dispatcher.study.proposing import StudyTuner
from dispatcher.study.record import StudyRecord

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
        "2 (the first is result 4): it has no 'kind'",
        "result 6: it has 'more', which this space lacks",
        "result 7: its result is nan",
    )


def test_results_outside_of_what_is_suggested_are_named_when_that_is_known(
    tmp_path: Path, old: bq.Study
) -> None:
    with study_in(tmp_path, None) as study:
        study.warm_start(old)
        with pytest.warns(UserWarning, match="2 results of the warm start lie outside"):
            study.optimize(
                lambda t: (
                    t.suggest_float("x", 0, 3) + len(t.suggest_categorical("kind", ["a", "b"]))
                ),
                n_trials=1,
            )


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
