"""Trials that suggest their parameters as they run."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

import bequeath as bq
from dispatcher.errors import UserError
from dispatcher.experiments.handle import ExperimentHandle
from tuners.by_run import ByRunTuner
from tuners.space import SpaceError, as_json, parse


def objective(t: Any) -> float:
    """Optuna's own trials take it, and ours."""
    kind = t.suggest_categorical("kind", ["line", "curve"])
    x = t.suggest_float("x", -5, 5)
    if kind == "curve":
        bend = t.suggest_int("bend", 1, 64, log=True)
        return float((x - 1) ** 2 + bend / 64)
    return float(abs(x) + t.suggest_float("rest", 0.25, 4, step=0.25))


@pytest.fixture
def study(tmp_path: Path) -> Any:
    with bq.Study(folder=tmp_path / "study", tuner="Random", seed=2) as made:
        yield made


def test_in_serial_use_it_proposes_what_optuna_does(tmp_path: Path) -> None:
    """With conditions between parameters. Mutation: the sampler is told results late."""
    sampler = optuna.samplers.TPESampler(seed=7)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    theirs = optuna.create_study(sampler=sampler)
    theirs.optimize(objective, n_trials=30)
    with bq.Study(folder=tmp_path / "study", seed=7, optimize="minimize") as ours:
        ours.optimize(objective, n_trials=30)
        trials = ours.trials()
    assert [t.parameters for t in trials] == [t.params for t in theirs.trials]
    assert [t.value for t in trials] == [t.value for t in theirs.trials]


def test_the_space_that_has_grown_is_on_record(study: bq.Study) -> None:
    study.optimize(objective, n_trials=12)
    study.close()
    handle = ExperimentHandle(study.folder)
    wanted = {
        "kind": bq.choice("line", "curve"),
        "x": bq.uniform(-5, 5),
        "bend": bq.int(1, 64, log=True),
        "rest": bq.quniform(0.25, 4, 0.25),
    }
    assert parse(handle.config().search_space) == parse(
        {name: as_json({name: wanted[name]})[name] for name in handle.config().search_space}
    )
    assert handle.config().search_space.keys() == wanted.keys()
    assert handle.verify().ok


@pytest.mark.parametrize("again", [False, True])
def test_other_bounds_for_a_name_are_refused(study: bq.Study, again: bool) -> None:
    """In the trial that has the name, in another one, and after a resume."""
    t = study.ask()
    assert t.suggest_float("x", 0, 1) == t.suggest_float("x", 0, 1)
    if again:
        study.tell(t, 1)
        study.close()
        study = bq.Study(folder=study.folder)
        t = study.ask()
    with pytest.raises(UserError, match=r"'x' is uniform\(0, 1\) in this study") as refused:
        t.suggest_float("x", 0, 2)
    assert "uniform(0, 2)" in refused.value.message
    assert 0 <= t.suggest_float("x", 0, 1) <= 1
    study.close()


def test_a_name_that_comes_too_late_is_refused(study: bq.Study) -> None:
    t = study.ask()
    x = t.suggest_float("x", 0, 1)
    t.report(0.5)
    assert t.suggest_float("x", 0, 1) == x
    with pytest.raises(UserError, match=r"'y' is suggested too late: trial 0 .* \['x'\]"):
        t.suggest_float("y", 0, 1)
    study.tell(t, 1)
    assert study.trials()[0].parameters == {"x": x}


def test_a_space_and_suggestions_agree_or_not(tmp_path: Path) -> None:
    space = {"x": bq.uniform(0, 1)}
    with bq.Study(space, folder=tmp_path / "study", tuner="Random") as study:
        t = study.ask()
        assert t.suggest_float("x", 0, 1) == t.parameters["x"]
        with pytest.raises(UserError, match="the space of this study has no 'y'; it has x"):
            t.suggest_float("y", 0, 1)


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda t: t.suggest_float("x", 1, 0), "uniform"),
        (lambda t: t.suggest_float("x", 0, 1, step=0.1, log=True), "step and a logarithm"),
        (lambda t: t.suggest_float("x", 0.05, 1, step=0.1), "no multiple of its step"),
        (lambda t: t.suggest_float("x", 0, 1, log=True), "loguniform"),
        (lambda t: t.suggest_int("n", 0.5, 3), "int"),
        (lambda t: t.suggest_categorical("c", []), "choice"),
    ],
)
def test_bad_bounds_are_refused_where_they_are_written(
    study: bq.Study, call: Any, sentence: str
) -> None:
    t = study.ask()
    with pytest.raises((UserError, bq.SpaceError), match=sentence):
        call(t)
    assert t.parameters == {}


def test_bounds_that_hold_one_number_give_it(study: bq.Study) -> None:
    t = study.ask()
    assert t.suggest_float("x", 2, 2) == 2.0
    assert t.suggest_int("n", 3, 3) == 3


@pytest.mark.parametrize("tuner", ["Random", "TPE", "CMA-ES", "QMC"])
def test_samplers_that_can(tmp_path: Path, tuner: str) -> None:
    with (
        bq.Study(folder=tmp_path / "study", tuner=tuner, seed=1) as study,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # Optuna's, of parameters that CMA-ES draws at random
        study.optimize(objective, n_trials=15)
        assert len({t.parameters["x"] for t in study.trials()}) == 15


def test_what_is_enqueued_may_name_some_parameters_only(tmp_path: Path) -> None:
    """Mutation: it is forgotten by a program that ends before it was begun with."""
    folder = tmp_path / "study"
    with bq.Study(folder=folder, seed=1) as study:
        study.enqueue({"x": 4.5, "kind": "line"})
        study.enqueue({"x": 3.5})
        study.enqueue({"x": 99})
    with bq.Study(folder=folder) as study:
        study.optimize(objective, n_trials=2)
        first, second = study.trials()
        assert (first.parameters["x"], first.parameters["kind"]) == (4.5, "line")
        assert second.parameters["x"] == 3.5
    with bq.Study(folder=folder) as study:
        with pytest.raises(UserError, match="'x' was enqueued as 99, which is outside"):
            study.optimize(objective, n_trials=1)
        study.optimize(objective, n_trials=1)
        assert len(study.trials()) == 4


def test_a_sampler_that_is_made_again_has_seen_all(tmp_path: Path) -> None:
    """Mutation: a resumed study draws at random again, as in its first ten trials."""
    folder = tmp_path / "study"
    with bq.Study(folder=folder, seed=1, optimize="minimize") as study:
        study.optimize(lambda t: abs(t.suggest_float("x", -100, 100)), n_trials=40)
    with bq.Study(folder=folder) as study:
        study.optimize(lambda t: abs(t.suggest_float("x", -100, 100)), n_trials=10)
        late = [t.value or 0.0 for t in study.trials()[40:]]
    assert np.median(late) < 25  # a uniform draw: 50


def test_a_trial_inherits_from_the_one_it_names(study: bq.Study) -> None:
    def grow(t: bq.StudyTrial) -> float:
        t.suggest_float("x", 0, 1)
        best = study.best()
        if best is not None:
            t.inherit(best.id)
        state = t.load_weights() or {"w": np.zeros(2)}
        t.save_weights({"w": state["w"] + 1})
        if best is not None:
            with pytest.raises(UserError, match="on record already"):
                t.inherit(best.id)
        return float(state["w"][0])

    study.optimize(grow, n_trials=4)
    assert [t.parent for t in study.trials()] == [None, 0, 1, 2]
    assert [t.value for t in study.trials()] == [0, 1, 2, 3]


def test_what_a_trial_does_wrong_is_one_sentence(study: bq.Study) -> None:
    with pytest.raises(UserError, match="trial 0 returned None"):
        study.optimize(lambda t: None, n_trials=3)
    with pytest.raises(ZeroDivisionError):
        study.optimize(lambda t: 1 / 0, n_trials=3)
    study.optimize(lambda t: 1 / 0, n_trials=2, catch=ZeroDivisionError)
    with pytest.warns(UserWarning, match="trial 4 failed: a metric must be finite") as said:
        study.optimize(lambda t: float("nan"), n_trials=1)
    assert [each.filename for each in said] == [__file__]
    assert [t.outcome for t in study.trials()] == ["failed"] * 5
    assert study.trials()[1].error == "ZeroDivisionError: division by zero"
    assert study.best() is None


@pytest.mark.parametrize(
    "low, high, step, last",
    [(0, 1, 0.3, 0.9), (0.0, 0.3, 0.1, 0.3), (0.1, 0.75, 0.1, 0.7), (-0.9, 0.95, 0.3, 0.9)],
)
def test_steps_reach_the_last_number(
    tmp_path: Path, low: float, high: float, step: float, last: float
) -> None:
    """Mutation: the last step is summed up in binary, and Optuna leaves it out with a warning."""
    with bq.Study(folder=tmp_path / "steps", seed=0) as study, warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(lambda t: t.suggest_float("x", low, high, step=step), n_trials=40)
        best = study.best()
    assert best is not None
    assert best.value == pytest.approx(last)


def test_bounds_that_numpy_has_computed(study: bq.Study) -> None:
    """Mutation: they are refused, unlike Optuna's."""

    def trial(t: Any) -> float:
        x = t.suggest_float("x", np.float32(0.5), np.int64(2), step=np.float32(0.5))
        y = t.suggest_float("y", np.float32(0.5), np.float32(0.5))
        n = t.suggest_int("n", np.int64(1), np.int64(3))
        return float(x + y + n + t.suggest_categorical("c", list(np.arange(3))))

    study.optimize(trial, n_trials=5)
    assert {type(each) for each in study.trials()[0].parameters.values()} == {float, int}


def test_a_parameter_as_a_file_has_it(study: bq.Study) -> None:
    """Mutation: a text is taken for a parameter that was made."""
    study.optimize(lambda t: t.suggest("x", "uniform(0, 1)"), n_trials=2)
    entry = {"_type": "uniform", "_value": [0, 1]}
    study.optimize(lambda t: t.suggest("x", entry) + t.suggest("x", bq.uniform(0, 1)), n_trials=2)
    with pytest.raises(SpaceError, match="did you mean uniform"):
        study.optimize(lambda t: t.suggest("y", "unifrom(0, 1)"), n_trials=1)


def layers(t: Any) -> list[dict[str, Any]]:
    block = {"op": bq.choice("conv", "pool"), "width": bq.int(8, 64)}
    found: list[dict[str, Any]] = t.suggest_blocks("layers", 1, 4, block)
    return found


def test_a_list_of_blocks_is_suggested_and_is_on_record(study: bq.Study) -> None:
    """Mutation: what the trial does with its list is on record."""

    def trial(t: bq.StudyTrial) -> float:
        first = layers(t)
        first[0]["op"] = "mine"
        again = layers(t)
        assert 1 <= len(again) <= 4
        assert again[0]["op"] in ("conv", "pool")
        return len(again)

    study.enqueue({"layers": [{"op": "pool", "width": 9}]})
    study.optimize(trial, n_trials=8)
    trials = study.trials()
    assert trials[0].parameters == {"layers": [{"op": "pool", "width": 9}]}
    assert {t.value for t in trials} == {len(t.parameters["layers"]) for t in trials}
    assert len({t.value for t in trials}) > 1
    study.close()
    with bq.Study(folder=study.folder) as again:
        t = again.ask()
        assert len(layers(t)) <= 4
        with pytest.raises(UserError, match="'layers' is blocks"):
            t.suggest_blocks("layers", 1, 9, {"op": bq.choice("conv", "pool")})
        again.enqueue({"layers": [{"op": "conv", "width": 99}]})
        with pytest.raises(UserError, match="which is outside of blocks"):
            layers(again.ask())


def test_samplers_of_single_values_refuse_a_list_by_run(tmp_path: Path) -> None:
    with bq.Study(folder=tmp_path / "study", tuner="TPE") as study:
        t = study.ask()
        with pytest.raises(bq.SpaceError, match="layers is a list of blocks") as raised:
            layers(t)
        assert raised.value.hint.startswith("take tuner='Random'")
        assert t.parameters == {}
        study.tell(t, t.suggest_float("x", 0, 1))


def test_with_a_space_any_tuner_of_lists_suggests_them(tmp_path: Path) -> None:
    """Evolution, resumed; and a warm start that leaves out what is no list of this space."""
    block = {"op": bq.choice("conv", "pool"), "width": bq.int(8, 64)}
    space = {"layers": bq.blocks(1, 4, block)}
    folder = tmp_path / "study"
    for _ in range(2):
        with bq.Study(
            space,
            folder=folder,
            tuner="RegularizedEvolution",
            tuner_args={"population_size": 4, "sample_size": 2, "inherit": False},
        ) as study:
            study.optimize(lambda t: len(layers(t)), n_trials=10)
            trials = study.trials()
    with bq.Study(
        {"layers": bq.blocks(1, 2, block)}, folder=tmp_path / "next", tuner="Random"
    ) as other:
        found = other.warm_start(folder)
        assert found.taken == sum(len(t.parameters["layers"]) <= 2 for t in trials)
        assert "layers is [" in str(found)


def test_a_choice_is_the_one_that_was_given(study: bq.Study) -> None:
    """As Optuna gives it, a tuple is one. Mutations: it is the list that the store has, which is no
    key of a mapping; whoever changes it changes the record."""
    sizes = {(64, 64): "small", (128, (2, 3)): "large"}
    t = study.ask()
    chosen = t.suggest_categorical("layers", [*sizes])
    assert sizes[chosen]
    assert t.suggest_categorical("layers", [*sizes]) == chosen
    lists = t.suggest_categorical("lists", [[1, 2]])
    lists.append(3)
    assert t.parameters["lists"] == [1, 2]


@pytest.mark.parametrize("tuner", ["TPE", "NSGA-II", "GP", "QMC", "CMA-ES", "Random"])
def test_opened_again_it_proposes_nothing_twice(tmp_path: Path, tuner: str) -> None:
    """Each time for one trial more. Mutation: the sampler begins again with its seed."""
    for _ in range(6):
        with bq.Study(tuner=tuner, folder=tmp_path / "s", seed=1) as study:
            study.optimize(lambda t: t.suggest_float("x", -9, 9) + t.suggest_int("y", 0, 999), 1)
    proposed = [one.parameters["x"] for one in study.trials()]
    assert len(set(proposed)) == 6, proposed


def test_a_record_with_a_value_between_two_steps_is_gone_on_with() -> None:
    """Mutation: the study cannot be opened any more."""
    tuner = ByRunTuner("NSGA-II", seed=1)
    tuner.update_search_space({"x": {"_type": "qrandint", "_value": [0, 9, 2]}})
    tuner.go_on_behind(2)
    tuner.recall_trial(0, {"x": 3})
    tuner.receive_trial_result(0, {"x": 3}, 1.0)
    tuner.recall_trial(1, {"x": 4})
    tuner.receive_trial_result(1, {"x": 4}, 2.0)
    tuner.generate_parameters(2)
    assert tuner.suggest(2, "x", tuner.dimensions["x"]) in range(0, 9, 2)


@pytest.mark.parametrize("tuner", ["NSGA-II", "QMC", "CMA-ES", "Random"])
def test_opened_again_it_goes_on_as_if_it_had_never_been_closed(tmp_path: Path, tuner: str) -> None:
    """Generations and sequences go on where they were."""

    def trial(t: bq.StudyTrial) -> float:
        return t.suggest_float("x", -9, 9) + t.suggest_int("y", 0, 999)

    found = []
    for name, often in (("whole", 1), ("often", 6)):
        for _ in range(often):
            arguments = {"population_size": 4} if tuner == "NSGA-II" else {}
            with bq.Study(
                tuner=tuner, tuner_args=arguments, folder=tmp_path / name, seed=1
            ) as study:
                study.optimize(trial, 12 // often)
        found.append([one.parameters for one in study.trials()])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "name, ours",
    [("should_prune", "t.should_stop()"), ("number", "t.id"), ("params", "t.parameters")],
)
def test_names_of_optunas_lead_to_ours(study: bq.Study, name: str, ours: str) -> None:
    t = study.ask()
    with pytest.raises(AttributeError, match=re.escape(f"has no {name!r}: write {ours}")):
        getattr(t, name)
    assert not hasattr(t, "anything_else")
    study.tell(t, 1.0)


def test_integers_that_a_gaussian_process_would_list(tmp_path: Path) -> None:
    """One by one, with a space, as enqueued ones, and when it is opened again. Mutation: the
    eleventh trial wants 8 TiB."""
    wide = 2**40
    study = bq.Study(tuner="GP", folder=tmp_path / "run", seed=1)
    sentence = r"GP lists all values of x, and there are 1,099,511,627,777 \(take a float"
    with study, pytest.raises(SpaceError, match=sentence):
        study.optimize(lambda t: t.suggest_int("x", 0, wide), n_trials=12)
    with bq.Study(folder=study.folder) as study:
        study.enqueue({"x": 3})
        with pytest.raises(SpaceError, match=sentence):
            study.optimize(lambda t: t.suggest_int("x", 0, wide), n_trials=1)
        study.optimize(lambda t: t.suggest_int("y", 0, wide, step=2**20), n_trials=1)
    with pytest.raises(UserError, match=sentence):
        bq.Study({"x": bq.int(0, wide)}, tuner="GP", folder=tmp_path / "space")


def test_a_study_of_before_with_integers_that_it_would_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: asked for the eleventh trial, it wants 8 TiB."""
    monkeypatch.setattr("tuners.optuna.limits.MOST_LISTED", 2**60)
    folder = tmp_path / "s"
    with bq.Study(tuner="GP", folder=folder, seed=1) as study:
        study.optimize(lambda t: t.suggest_int("x", 0, 2**40), n_trials=10)
    monkeypatch.undo()
    with bq.Study(folder=folder) as study:
        with pytest.raises(SpaceError, match="GP lists all values of x"):
            study.optimize(lambda t: t.suggest_int("x", 0, 2**40), n_trials=1)
        assert len(study.trials()) == 11
