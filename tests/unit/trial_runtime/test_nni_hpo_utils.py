"""What tuners modelled on NNI's own read search spaces with; and sentences for what is not here."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trial_runtime import nni_shim
from trial_runtime.nni_shim.path.nni.common import NoMoreTrialError
from trial_runtime.nni_shim.path.nni.common.hpo_utils import (
    Deduplicator,
    deformat_parameters,
    format_parameters,
    format_search_space,
    validate_search_space,
)

SPACE = {
    "lr": {"_type": "loguniform", "_value": [0.01, 1]},
    "n": {"_type": "randint", "_value": [4, 8]},
    "q": {"_type": "quniform", "_value": [0.25, 1, 0.5]},
    "net": {
        "_type": "choice",
        "_value": [
            {"_name": "wide", "k": {"_type": "choice", "_value": ["a", "b"]}},
            {"_name": "none"},
        ],
    },
}


def test_a_space_is_a_table_and_parameters_come_back_nested() -> None:
    table = format_search_space(SPACE)
    assert list(table) == [("lr",), ("n",), ("q",), ("net",), ("net", 0, "k")]
    assert table["n",].size == 4
    assert table["lr",].low == pytest.approx(np.log(0.01))
    assert list(table["q",].clip or ()) == [0.25, 1]
    flat: dict[Any, Any] = {
        ("lr",): 0.0,
        ("n",): 3,
        ("q",): 0.3,
        ("net",): 0,
        ("net", 0, "k"): np.int64(1),
    }
    whole = {"lr": 1.0, "n": 7, "q": 0.5, "net": {"_name": "wide", "k": "b"}}
    assert deformat_parameters(flat, table) == whole
    assert format_parameters(whole, table) == {**flat, ("q",): 0.5}
    none: dict[Any, Any] = {**flat, ("net",): 1}
    none.pop(("net", 0, "k"))
    assert not table["net", 0, "k"].is_activated_in(none)
    assert format_parameters({**whole, "net": {"_name": "none"}}, table) == {**none, ("q",): 0.5}


def test_duplicates_are_replaced_until_nothing_is_left() -> None:
    table = format_search_space({"n": SPACE["n"], "net": SPACE["net"]})
    once = Deduplicator(table)
    again = {("n",): 0, ("net",): 1}
    found = [deformat_parameters(once(dict(again)), table) for _ in range(4 * 3)]
    assert len({repr(one) for one in found}) == 12
    with pytest.raises(NoMoreTrialError):
        once(again)
    steps = format_search_space({"q": SPACE["q"]})
    other = Deduplicator(steps)
    values = [deformat_parameters(other({("q",): 0.5}), steps)["q"] for _ in range(3)]
    assert sorted(values) == [0.25, 0.5, 1]
    assert all(one != two for one, two in pairwise(values))


@pytest.mark.parametrize(
    "entry, said",
    [
        ({"_type": "choice", "_value": [[1]]}, "numbers and texts"),
        ({"_type": "uniform", "_value": [1]}, "takes 2 values"),
        ({"_type": "quniform", "_value": [1, 2]}, "takes 3 values"),
        ({"_type": "randint", "_value": [0.5, 2]}, "whole numbers"),
        ({"_type": "uniform", "_value": [2, 1]}, "lower bound first"),
        ({"_type": "loguniform", "_value": [0, 1]}, "bounds above 0"),
        ({"_type": "normal", "_value": [0, 0]}, "sigma above 0"),
        ({"_type": "layer_choice", "_value": []}, "not among"),
        ([1, 2], "an object with"),
    ],
)
def test_a_space_that_does_not_hold_is_logged_or_raised(entry: Any, said: str) -> None:
    assert validate_search_space(SPACE)
    assert not validate_search_space({"x": entry})
    with pytest.raises(ValueError, match=said):
        validate_search_space({"x": entry}, raise_exception=True)


SENTENCES = """
import nni
assert nni.tuner.Tuner and nni.utils.merge_parameter
nni.enable_global_logging()
from nni.common.hpo_utils.optimize_mode import OptimizeMode
from nni.common.hpo_utils.formatting import ParameterSpec
for code, sentence in (
    ("from nni import retiarii", "install the real nni"),
    ("from nni import variable", "lists what there is"),
    ("from nni import Experiment", "bequeath run SCRIPT.py"),
    ("import nni.runtime.config", "lists what there is"),
):
    try:
        exec(code)
    except ImportError as error:
        assert sentence in str(error), (code, error)
    else:
        raise AssertionError(code)
"""


def test_what_is_not_here_says_what_to_do_however_it_is_imported() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SENTENCES],
        env={"PYTHONPATH": f"{root}:{nni_shim.folder()}"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
