"""What is brought here from other machines: the key, its short form, and how to get it wrong."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.experiment import build_experiment
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.experiment.snapshot import from_json, to_json

BASE = {
    "searchSpace": {"lr": {"_type": "choice", "_value": [1]}},
    "tuner": {"name": "Random"},
    "trialCommand": "true",
    "trialConcurrency": 1,
}


def read(value: Any = None) -> ExperimentConfig:
    return build_experiment(BASE if value is None else {**BASE, "fetch": value})


@pytest.mark.parametrize(
    "value, kinds",
    [
        (None, ("logs", "artefacts")),
        ("never", ()),
        (False, ()),
        ("on-end", ("logs", "artefacts")),
        ({"logs": "never"}, ("artefacts",)),
        ({"work": "onEnd", "artefacts": False}, ("logs", "work")),
    ],
)
def test_what_is_fetched(value: Any, kinds: tuple[str, ...]) -> None:
    config = read(value)
    assert config.fetch.kinds == kinds
    assert from_json(to_json(config)).fetch == config.fetch


def test_how_much() -> None:
    assert read().fetch.max_size == 256 << 20
    assert read({"maxSize": "2gb"}).fetch.max_size == 2 << 30


@pytest.mark.parametrize(
    "value, where, said",
    [
        ("sometimes", "fetch", "onEnd"),
        ({"logs": "always"}, "fetch.logs", "onEnd"),
        ({"checkpoints": "onEnd"}, "fetch.checkpoints", "unknown key"),
        ({"maxSize": 0}, "fetch.maxSize", "more than nothing"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(value: Any, where: str, said: str) -> None:
    with pytest.raises(ExperimentFileErrors) as raised:
        read(value)
    text = str(raised.value)
    assert said in text
    assert where in text
