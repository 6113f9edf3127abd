"""What an ``Experiment`` is before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher import Experiment
from dispatcher.errors import UserError
from dispatcher.experiment import ExperimentFileErrors, build_experiment
from tests.unit.api import trial_module
from tuners.random import RandomTuner

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def _settings(**settings: Any) -> dict[str, Any]:
    return {"search_space": SPACE, "trial_concurrency": 2, **settings}


def test_a_function_and_a_class_of_modules() -> None:
    made = Experiment(
        trial=trial_module.train,
        tuner=trial_module.Mine,
        tuner_args={"n": 3},
        **_settings(),
    )
    assert made.config.trial_function == "tests.unit.api.trial_module:train"
    assert made.config.trial_code_directory == Path(__file__).parents[3]
    assert made.config.tuner.class_name == "tests.unit.api.trial_module:Mine"
    assert made.config.tuner.class_args == {"n": 3}
    assert repr(made) == "<Experiment 'experiment', not started>"


def test_a_tuner_of_ours_by_name_or_class() -> None:
    by_name = Experiment(trial=trial_module.train, tuner="random", **_settings())
    by_class = Experiment(trial=trial_module.train, tuner=RandomTuner, **_settings())
    assert by_name.config.tuner == by_class.config.tuner
    assert by_class.config.tuner.name == "Random"


def test_keywords_win_over_the_mapping() -> None:
    values = _settings(trial_command="true", tuner={"name": "Random"})
    assert Experiment(values, trial_concurrency=5).config.trial_concurrency == 5
    assert Experiment(build_experiment(values)).config.trial_concurrency == 2


def test_a_file_stands_for_itself(tmp_path: Path) -> None:
    file = tmp_path / "mine.yml"
    file.write_text(
        "tuner: {name: Random}\ntrialCommand: 'true'\ntrialConcurrency: 1\n"
        "searchSpace: {x: {_type: uniform, _value: [0, 1]}}\n"
    )
    assert Experiment(file).config.experiment_name == "mine"
    with pytest.raises(UserError, match="'max_trial_number' cannot be given beside"):
        Experiment(file, max_trial_number=3)


def test_faults_of_settings_are_all_named() -> None:
    with pytest.raises(ExperimentFileErrors) as caught:
        Experiment(trial=trial_module.train, tuner="Randm", max_trial_numer=3, **_settings())
    assert len(caught.value.errors) == 2


def test_nothing_can_be_asked_before_the_start() -> None:
    made = Experiment(trial=trial_module.train, tuner="Random", **_settings())
    assert not made.running
    for ask in (made.status, made.best, made.stop, made.why):
        with pytest.raises(UserError, match="has not been started"):
            ask()
