"""The keys ``stopWhen`` and ``callbacks``: each way to get them wrong, with its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.experiment import parse_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.wiring.settings import settings_of
from tests.unit.experiment.conftest import GOOD

ErrorsOf = Callable[[str], list[str]]


def test_ends_are_read_kept_and_given_to_the_core(tmp_path: Path) -> None:
    """Mutation: a record that loses the short form."""
    (tmp_path / "hooks.py").write_text("def tell(facts): ...\n")
    text = GOOD + (
        "optimizeMode: minimize\n"
        "stopWhen: {target: 1, noProgress: {trials: 3, leastImprovement: 0.5}, trialTime: 2h}\n"
        "callbacks: {onTrialEnd: hooks:tell, on_new_best: {command: true-or-false x 'y z'}}\n"
    )
    (tmp_path / "true-or-false").touch(0o700)
    config = parse_experiment(text, "e.yml", tmp_path)
    settings = settings_of(config)
    assert (settings.maximize, settings.target, settings.patience) == (False, 1.0, 3)
    assert (settings.least_progress, settings.most_trial_s) == (0.5, 7200.0)
    assert from_json(to_json(config)) == config
    assert config.callbacks is not None
    assert [each.title for each in config.fed] == ["callbacks"]
    assert config.callbacks.given["onNewBest"].argv == ["true-or-false", "x", "y z"]
    assert settings_of(parse_experiment(GOOD, "e.yml", tmp_path)).maximize is True
    assert parse_experiment(GOOD + "callbacks: {}\n", "e.yml", tmp_path).fed == ()


@pytest.mark.parametrize(
    "line, error",
    [
        ("stopWhen: 5", "e.yml:7:11: 'stopWhen' must be a section of keys, not the number 5"),
        ("stopWhen: {target: best}", "e.yml:7:20: 'stopWhen.target' must be a number, not the"),
        ("stopWhen: {target: true}", "e.yml:7:20: 'stopWhen.target' must be a number, not the"),
        ("stopWhen: {target: .nan}", "e.yml:7:20: 'stopWhen.target' must be a finite number"),
        ("stopWhen: {traget: 1}", "e.yml:7:12: unknown key 'traget' in 'stopWhen'; did you mean"),
        ("stopWhen: {noProgress: 0}", "e.yml:7:24: 'stopWhen.noProgress.trials' must be at least"),
        (
            "stopWhen: {noProgress: {leastImprovement: 3}}",
            "e.yml:7:24: 'stopWhen.noProgress' needs the key 'trials'",
        ),
        (
            "stopWhen: {noProgress: {trials: 3, leastImprovement: -1}}",
            "e.yml:7:54: 'stopWhen.noProgress.leastImprovement' must be at least 0",
        ),
        ("stopWhen: {trialTime: 0}", "e.yml:7:23: 'stopWhen.trialTime' must be longer than"),
        (
            "callbacks: {onTrialEnd: nothing_there:tell}",
            "e.yml:7:25: 'callbacks.onTrialEnd.function' names the module 'nothing_there', which",
        ),
        (
            "callbacks: {onTrialEnd: json:laods}",
            "e.yml:7:25: 'callbacks.onTrialEnd.function' is not in",
        ),
        (
            "callbacks: {onTrialEnd: notify.sh}",
            "e.yml:7:25: 'callbacks.onTrialEnd' must be written as 'module:function', not "
            "'notify.sh' — a program is written as a section: {command: notify.sh}",
        ),
        (
            "callbacks: {onTrialEnd: {command: not-there.sh}}",
            "e.yml:7:35: 'callbacks.onTrialEnd.command' names a program that is neither in",
        ),
        (
            'callbacks: {onTrialEnd: {command: "echo \'x"}}',
            "e.yml:7:35: 'callbacks.onTrialEnd' cannot be split into words: No closing",
        ),
        ("callbacks: {onTrialEnd: {command: ' '}}", "e.yml:7:35: 'callbacks.onTrialEnd' names no"),
        ("callbacks: {onTrialEnd: {}}", "e.yml:7:25: 'callbacks.onTrialEnd' needs either"),
        (
            "callbacks: {onTrialEnd: {function: 'json:loads', command: 'true'}}",
            "e.yml:7:25: 'callbacks.onTrialEnd' needs either 'function' or 'command'",
        ),
        ("callbacks: {keep: 3}", "e.yml:7:13: unknown key 'keep' in 'callbacks'"),
        ("callbacks: {timeLimit: 0}", "e.yml:7:24: 'callbacks.timeLimit' must be longer than"),
        ("callbacks: json:loads", "e.yml:7:12: 'callbacks' must be a section of keys, not the"),
        (
            "sinks: [{kind: tensorboard, name: callbacks}]",
            "e.yml:7:35: 'sinks' has one called 'callbacks', as the callbacks are",
        ),
    ],
)
def test_each_mistake_is_named_with_its_place(errors_of: ErrorsOf, line: str, error: str) -> None:
    errors = errors_of(GOOD + line + "\n")
    assert len(errors) == 1, errors
    assert errors[0].replace("\n  ", " — ").startswith(error), errors[0]


SEVERAL = "objectives: {default: maximize, size: minimize <= 9, mem: '>= 1'}\n"


@pytest.mark.parametrize(
    "line, error",
    [
        (
            "stopWhen: {target: 1}",
            "e.yml:8:20: 'stopWhen.target' looks at one objective, and there are default, size — "
            "name it: {objective: size, target: …}",
        ),
        ("stopWhen: {noProgress: 5}", "e.yml:8:24: 'stopWhen.noProgress' looks at one objective"),
        (
            "stopWhen: {target: 1, objective: mem}",
            "e.yml:8:34: 'stopWhen.objective' is 'mem', which is no objective with a direction — "
            "write one of default, size",
        ),
    ],
)
def test_an_end_by_results_names_one_of_several_objectives(
    errors_of: ErrorsOf, line: str, error: str
) -> None:
    """Mutation: ``default`` is taken, whatever else gets better."""
    (found,) = errors_of(f"{GOOD}{SEVERAL}{line}\n")
    assert found.replace("\n  ", " — ").startswith(error)


def test_the_objective_of_an_end_goes_with_its_direction_and_all_bounds(tmp_path: Path) -> None:
    """Mutation: the target of a number to be minimized is reached by all that is above it."""
    text = GOOD + SEVERAL
    line = "stopWhen: {target: 4, objective: size, trialTime: 1h}\n"
    settings = settings_of(parse_experiment(text + line, "e.yml", tmp_path))
    assert (settings.end_objective, settings.maximize) == ("size", False)
    assert (settings.at_most, settings.at_least) == ({"size": 9.0}, {"mem": 1.0})
    settings = settings_of(
        parse_experiment(text + "stopWhen: {trialTime: 1h}\n", "e.yml", tmp_path)
    )
    assert (settings.end_objective, settings.maximize) == ("default", True)
    one = GOOD + "objectives: {default: minimize}\nstopWhen: {target: 4}\n"
    settings = settings_of(parse_experiment(one, "e.yml", tmp_path))
    assert (settings.end_objective, settings.maximize) == ("default", False)
