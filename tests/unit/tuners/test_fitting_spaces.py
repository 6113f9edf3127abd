"""A search space that a tuner cannot handle is named before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.experiment import ExperimentFileErrors
from dispatcher.experiment.loader import build_experiment
from tuners import make_builtin
from tuners.builtin import BUILTIN_NAMES, fold
from tuners.catalogue import EXAMPLE_ARGUMENTS, describe

BLOCKS = [{"width": 8}, {"width": 8}]


def one(name: str) -> dict[str, object]:
    return {
        name: {"_type": "uniform", "_value": [0, 1]},
        "x": {"_type": "uniform", "_value": [0, 1]},
    }


LISTS = {
    "cells": {"_type": "blocks", "_value": [1, 8, {"w": {"_type": "uniform", "_value": [0, 1]}}]}
}

#: Tuners that model single values.
MODELS = {"BOHB", "TPE", "GP", "QMC", "NSGA-II", "NSGA-III", "Optuna"}


@pytest.mark.parametrize(
    "name, arguments, space, words",
    [
        ("GridSearch", {}, {}, "a grid of it has no point"),
        ("RegularizedEvolution", {}, {}, "nothing to mutate"),
        ("PBT", {}, one("restore_path"), "'restore_path' is one that the tuner itself adds"),
        ("ASHA", {}, one("promoted_from"), "'promoted_from' is one that"),
        (
            "Hyperband",
            {},
            one("budget"),
            "'budget' is one that the tuner itself adds: rename yours",
        ),
        ("NetworkMorphism", {"blocks": BLOCKS}, one("steps"), "'steps' is one that"),
        ("MorphingEvolution", {"blocks": BLOCKS}, one("blocks"), "'blocks' is one that"),
        ("TPE", {}, {}, "the search space is empty"),
        ("SPOS", {}, one("x"), "'x' is no choice between a few"),
        ("SPOS", {}, LISTS, "'cells' is no choice between a few"),
        ("TPE", {}, LISTS, "cells is a list of blocks, and this tuner models single values"),
        ("BOHB", {"max_budget": 9}, LISTS, "(take RegularizedEvolution, PBT, ASHA, Hyperband or"),
        ("CMA-ES", {}, {**LISTS, **one("y")}, "cells is a list of blocks"),
        ("GridSearch", {}, LISTS, "'cells' is a list of blocks with numbers without steps"),
    ],
)
def test_what_cannot_be_searched(name, arguments, space, words, tmp_path: Path) -> None:
    assert words in make_builtin(name, arguments).handles(space)
    keys = {
        "tuner": {"name": name, "classArgs": arguments},
        "searchSpace": space,
        "trialCommand": "true",
        "trialConcurrency": 1,
        "trialCodeDirectory": str(tmp_path),
        "experimentWorkingDirectory": str(tmp_path / "kept"),
    }
    with pytest.raises(ExperimentFileErrors) as refused:
        build_experiment(keys)
    (error,) = refused.value.errors
    if not space:  # said for all of them in the same words
        assert "is empty: a built-in tuner has nothing to choose from" in error.message
        return
    assert words in error.message
    assert f"'searchSpace' does not suit {name}" in error.message


def test_networks_need_no_search_space_and_all_say_what_they_take() -> None:
    assert make_builtin("MorphingEvolution", {"blocks": BLOCKS}).handles({}) == ""
    for name in BUILTIN_NAMES:
        page = describe(name)
        wanted = "all types but lists of blocks" if name in MODELS else "all types"
        assert page.spaces == wanted or name in {"CMA-ES", "SPOS", "ENAS"}
        assert page.arguments or name == "GridSearch"
        assert all(argument.text for argument in page.arguments), name
        # Words for people, not annotations or marks of a docstring.
        assert not any({*"[]."} & {*argument.type} for argument in page.arguments), name
        assert "``" not in page.text + page.paper
        assert page.paper or name == "GridSearch"
        make_builtin(name, EXAMPLE_ARGUMENTS.get(fold(name), {}))
