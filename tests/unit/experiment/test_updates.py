from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment import ExperimentConfig, ExperimentFileErrors
from dispatcher.experiment.stop_when import NoProgressConfig, StopWhenConfig
from dispatcher.experiment.updates import apply_update

SPACE = {"b": {"_type": "choice", "_value": [1, 2]}}


@pytest.mark.parametrize(
    "key,value,attribute,read",
    [
        ("trialConcurrency", 4, "trial_concurrency", 4),
        ("trial_concurrency", "4", "trial_concurrency", 4),
        ("maxTrialNumber", "100", "max_trial_number", 100),
        ("maxTrialNumber", None, "max_trial_number", None),
        ("maxTrialNumber", "null", "max_trial_number", None),
        ("max_experiment_duration", "2h", "max_experiment_duration", 7200),
        ("lookahead", "0", "lookahead", 0),
        (
            "stop_when",
            "{target: 0.9, no_progress: 5}",
            "stop_when",
            StopWhenConfig(target=0.9, no_progress=NoProgressConfig(trials=5)),
        ),
        ("stopWhen", {}, "stop_when", StopWhenConfig()),
        ("searchSpace", SPACE, "search_space", SPACE),
        ("searchSpace", "b: {_type: choice, _value: [1, 2]}", "search_space", SPACE),
    ],
)
def test_what_may_be_changed(
    config: ExperimentConfig, key: str, value: Any, attribute: str, read: object
) -> None:
    changed = apply_update(config, key, value)
    assert getattr(changed, attribute) == read
    assert changed.model_copy(update={attribute: getattr(config, attribute)}) == config


def test_a_new_search_space_is_no_longer_that_of_a_file(config: ExperimentConfig) -> None:
    from_file = config.model_copy(update={"search_space_file": Path("/s.json")})
    assert apply_update(from_file, "lookahead", 9).search_space_file == Path("/s.json")
    assert apply_update(from_file, "searchSpace", SPACE).search_space_file is None


@pytest.mark.parametrize(
    "key,value,said",
    [
        (
            "trialConcurency",
            4,
            "update of trialConcurency: unknown key 'trialConcurency'; "
            "did you mean 'trialConcurrency'?",
        ),
        ("tuner", {}, "update of tuner: 'tuner' is fixed once an experiment has started"),
        (
            "trialConcurrency",
            0,
            "update of trialConcurrency: 'trialConcurrency' must be at least 1, not 0",
        ),
        (
            "maxTrialNumber",
            "many",
            "update of maxTrialNumber: 'maxTrialNumber' must be a whole number, "
            "not the text 'many'",
        ),
        (
            "searchSpace",
            {"a": {"_type": "uniform", "_value": [2, 1]}},
            "update of searchSpace: 'searchSpace.a._value' is contradictory: 2 to 1 holds nothing",
        ),
        (
            "searchSpace",
            '{"a\\ud800": 3}',
            "update of searchSpace: holds half a character, '\\ud800'",
        ),
        ("searchSpace", "a: [", "update of searchSpace:1:5: is not YAML"),
    ],
)
def test_what_may_not(config: ExperimentConfig, key: str, value: Any, said: str) -> None:
    with pytest.raises(ExperimentFileErrors) as refused:
        apply_update(config, key, value)
    assert str(refused.value).startswith(said)
