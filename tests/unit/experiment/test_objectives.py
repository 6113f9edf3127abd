"""The key ``objectives``: read, settled with its neighbours, and each way to get it wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment import build_experiment, parse_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.experiment.updates import UPDATABLE
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.load import build
from dispatcher.wiring.settings import settings_of
from tests.unit.experiment.conftest import GOOD
from trial_runtime.endpoint import Endpoint

ErrorsOf = Callable[[str], list[str]]
BOTH = {"default": "maximize", "size": "minimize <= 4096"}


def test_objectives_are_read_in_one_spelling_kept_and_given_to_the_core(tmp_path: Path) -> None:
    """Mutation: a record that loses a bound."""
    text = GOOD + "objectives: {default: Maximize, size: minimize<=4e3, memory_gb: <= 8}\n"
    config = parse_experiment(text, "e.yml", tmp_path)
    assert config.objectives == {
        "default": "maximize",
        "size": "minimize <= 4000",
        "memory_gb": "<= 8",
    }
    assert settings_of(config).objectives == ("default", "size", "memory_gb")
    assert from_json(to_json(config)) == config
    plain = parse_experiment(GOOD, "e.yml", tmp_path)
    assert (plain.objectives, settings_of(plain).objectives) == ({}, ())
    assert "objectives" not in UPDATABLE


def test_the_direction_of_default_is_the_experiments(good: dict[str, Any]) -> None:
    config = build_experiment(good | {"objectives": {"default": "minimize", "size": "maximize"}})
    assert config.optimize_mode == "minimize"
    assert settings_of(config).maximize is False
    other = build_experiment(good | {"objectives": {"accuracy": "maximize", "size": "minimize"}})
    assert other.optimize_mode == "maximize"


def test_the_argument_of_a_built_in_tuner_goes_on_working(good: dict[str, Any]) -> None:
    """Mutation: objectives of an argument that a result may lack unnoticed."""
    tuner = {
        "name": "NSGAII",
        "classArgs": {"objectives": {"default": "minimize", "size": "maximize"}},
    }
    config = build_experiment(good | {"tuner": tuner})
    assert config.objectives == {"default": "minimize", "size": "maximize"}
    assert config.optimize_mode == "minimize"
    assert from_json(to_json(config)) == config
    contradicts = build_experiment(good | {"tuner": tuner, "optimizeMode": "maximize"})
    assert (contradicts.objectives, contradicts.optimize_mode) == ({}, "maximize")
    assert from_json(to_json(contradicts)) == contradicts


def test_a_built_in_tuner_gets_them_and_its_own_arguments_win(tmp_path: Path) -> None:
    def made(name: str, **args: Any) -> Any:
        config = TunerHostConfig(
            endpoint=Endpoint(""),
            weights_root=str(tmp_path),
            builtin=name,
            class_args=args,
            optimize_mode="maximize",
            objectives=BOTH,
        )
        return build(config).tuner

    evolution = made("RegularizedEvolution")
    assert evolution.objectives.modes == (("default", "maximize"), ("size", "minimize"))
    assert evolution.objectives.bounded[0].bound == 4096.0
    own = made("RegularizedEvolution", objectives={"default": "minimize"})
    assert own.objectives.modes == (("default", "minimize"),)
    made("Random")  # it takes none, and is built all the same


@pytest.mark.parametrize(
    "lines, error",
    [
        ("objectives: 5", "e.yml:7:13: 'objectives' must be a mapping, not the number 5"),
        (
            "objectives: {default: maximise}",
            "e.yml:7:23: 'objectives.default' is 'maximise', and the direction is 'maximize' or "
            "'minimize' — write 'maximize', 'minimize', a bound as in 'minimize <= 4096', or",
        ),
        (
            "objectives: {default: maximize, size: minimize < 3}",
            "e.yml:7:39: 'objectives.size' is 'minimize < 3', which is no direction and no bound",
        ),
        (
            "objectives: {default: maximize, size: <= big}",
            "e.yml:7:39: 'objectives.size' is '<= big', and 'big' is no number that could",
        ),
        (
            "objectives: {default: maximize, size: 3}",
            "e.yml:7:39: 'objectives.size' must be a text such as 'maximize', not 3",
        ),
        (
            "objectives: {default: {mode: maximize}}",
            "e.yml:7:23: 'objectives.default' must be a text such as 'maximize', not {",
        ),
        (
            "objectives: {default: maximize, 'a\"b': minimize}",
            "e.yml:7:40: 'objectives.",
        ),
        (
            "objectives: {size: <= 3}",
            "e.yml:7:13: 'objectives' has bounds only — give one of them a direction",
        ),
        (
            "optimizeMode: minimize\nobjectives: {default: maximize, size: minimize}",
            "e.yml:7:15: 'optimizeMode' is minimize, but 'objectives' has 'default: maximize' — "
            "leave 'optimizeMode' out",
        ),
        (
            "onTrialWithoutResult: 0.5\nobjectives: {default: maximize, size: minimize}",
            "e.yml:7:23: 'onTrialWithoutResult' is one number, and a result needs 'size' as well",
        ),
        (
            "metrics: {objective: acc, also: [loss], stdout: true}\n"
            "objectives: {default: maximize, size: minimize}",
            "e.yml:8:39: 'objectives' names 'size', which is none of 'metrics.also' — add it",
        ),
        (
            "metrics: {objective: acc, stdout: true}\n"
            "objectives: {acc: maximize, default: minimize}",
            "e.yml:8:19: 'objectives' names 'acc', which is called 'default' in results — write",
        ),
    ],
)
def test_each_mistake_is_named_with_its_place(errors_of: ErrorsOf, lines: str, error: str) -> None:
    errors = errors_of(GOOD + lines + "\n")
    assert len(errors) == 1, errors
    assert errors[0].replace("\n  ", " — ").startswith(error), errors[0]


@pytest.mark.parametrize(
    "tuner, objectives, error",
    [
        (
            "PBT",
            "{default: maximize, size: minimize}",
            "'objectives' has more than a direction for 'default', and PBT searches by that alone "
            "— take one that has the argument 'objectives', such as NSGA-II",
        ),
        ("PBT", "{default: maximize <= 3}", "'objectives' has more than a direction for"),
        (
            "CMA-ES",
            "{default: maximize, size: minimize}",
            "'objectives' does not suit CMA-ES: CmaEsSampler searches by one objective, and there "
            "are 2 — Take TPE",
        ),
        (
            "QMC",
            "{default: maximize, size: <= 3}",
            "'objectives' does not suit QMC: QMCSampler knows no bounds, and the objective 'size'",
        ),
    ],
)
def test_a_tuner_that_cannot_search_by_them(
    errors_of: ErrorsOf, tuner: str, objectives: str, error: str
) -> None:
    space = "  b: {_type: uniform, _value: [0, 1]}\ntuner:"
    text = GOOD.replace("tuner:", space).replace("name: Random", f"name: {tuner}")
    errors = errors_of(text + f"objectives: {objectives}\n")
    assert len(errors) == 1, errors
    assert errors[0].replace("\n  ", " — ").startswith(f"e.yml:8:13: {error}"), errors[0]


@pytest.mark.parametrize("tuner", ["Random", "GridSearch", "TPE", "NSGA-III"])
def test_tuners_that_take_them_or_compare_nothing(good: dict[str, Any], tuner: str) -> None:
    good["searchSpace"] = {"x": {"_type": "choice", "_value": [1, 2]}}
    config = build_experiment(good | {"tuner": {"name": tuner}, "objectives": BOTH})
    assert config.objectives == BOTH


def test_one_direction_for_default_is_what_every_tuner_takes(good: dict[str, Any]) -> None:
    config = build_experiment(
        good | {"tuner": {"name": "PBT"}, "objectives": {"default": "minimize"}}
    )
    assert config.optimize_mode == "minimize"
