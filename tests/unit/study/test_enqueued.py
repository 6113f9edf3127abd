"""Parameters that are enqueued: as the space spells them, and which of them no trial suggests."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import bequeath as bq
from dispatcher.errors import UserError


def spelt(found: Any) -> Any:
    return {name: repr(one) for name, one in found.items() if name != "save_path"}


def test_a_float_that_stands_for_an_integer_is_one(tmp_path: Path) -> None:
    """At any depth, and on record. Mutation: it is told apart from what the tuner proposes."""
    inner = {"k": bq.int(1, 9), "x": bq.uniform(0, 9)}
    space = {
        "n": bq.int(1, 3),
        "x": bq.uniform(0, 9),
        "size": bq.choice(16, 32, "a"),
        "alike": bq.choice(1, 2.0, 2),
        "kind": bq.choice({"one": inner, "two": {}}),
        "layers": bq.blocks(1, 3, {"width": bq.int(8, 64)}),
    }
    wanted = {
        "n": 2,
        "x": 3.0,
        "size": 32,
        "alike": 2.0,
        "kind": {"_name": "one", "k": 3, "x": 1.0},
        "layers": [{"width": 9}],
    }
    given: dict[str, Any] = {
        **wanted,
        "n": 2.0,
        "size": 32.0,
        "kind": {"_name": "one", "k": 3.0, "x": 1.0},
        "layers": [{"width": 9.0}],
    }
    with bq.Study(space, folder=tmp_path / "s", tuner="Random") as study:
        study.enqueue(given)
        t = study.ask()
        assert spelt(t.parameters) == spelt(wanted)
        study.tell(t, 1)
        assert spelt(study.trials()[0].parameters) == spelt(wanted)
        with pytest.raises(UserError, match=r"n is 2\.5, and may be"):
            study.enqueue({**given, "n": 2.5})


def test_without_a_space_too(tmp_path: Path) -> None:
    """Mutation: the trial gets an integer, and a float is on record."""
    with bq.Study(folder=tmp_path / "s", tuner="Random") as study:
        study.enqueue({"n": 2.0, "size": 32.0})
        study.optimize(
            lambda t: t.suggest_int("n", 1, 3) + t.suggest_categorical("size", [16, 32]), 1
        )
        assert spelt(study.trials()[0].parameters) == {"n": "2", "size": "32"}


def test_a_name_that_no_trial_suggests_is_named(tmp_path: Path) -> None:
    """At the line of the program. Mutation: a name that is misspelt is dropped without a word."""

    def trial(t: bq.StudyTrial) -> float:
        return t.suggest_float("x", -10, 10) ** 2

    with bq.Study(folder=tmp_path / "s", tuner="Random") as study:
        study.enqueue({"lr_": 0.5})
        study.enqueue({"x": 1.0})
        study.enqueue({"x": 1.0, "lr_": 0.5, "mo_": 0.9})
        sentence = "lr_ was enqueued for trial 0, and the trial never suggested it"
        with pytest.warns(UserWarning, match=sentence) as heard:
            study.optimize(trial, n_trials=1)
        assert [each.filename for each in heard] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            study.optimize(trial, n_trials=1)
        t = study.ask()
        x = t.suggest_float("x", -10, 10)
        sentence = "lr_, mo_ were enqueued for trial 2, and the trial never suggested them"
        with pytest.warns(UserWarning, match=sentence) as heard:
            study.tell(t.id, x)
        assert [each.filename for each in heard] == [__file__]
        assert [each.value for each in study.trials()][1:] == [1.0, 1.0]
