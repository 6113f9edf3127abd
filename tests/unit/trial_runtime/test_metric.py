from __future__ import annotations

import math

import msgspec
import pytest

from trial_runtime import api_errors, errors
from trial_runtime.api_errors import InvalidMetric
from trial_runtime.metric import metric_text


@pytest.mark.parametrize(
    "value", [1, 0.1, -3.5e-300, 10**20, {"default": 1}, {"default": 0.5, "a": [1, "x"]}]
)
def test_numbers_and_mappings(value):
    assert msgspec.json.decode(metric_text(value)) == value


def test_numpy_scalars():
    numpy = pytest.importorskip("numpy")
    for value in (numpy.float32(0.5), numpy.float64(0.5), numpy.array(0.5), numpy.array([0.5])):
        assert metric_text(value) == "0.5"
    assert metric_text(numpy.int64(3)) == "3"
    assert metric_text({"default": numpy.float32(0.25)}) == '{"default":0.25}'


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        {"default": math.nan},
        {"default": 1, "deep": [{"x": math.inf}]},
        {"loss": 1},
        {"default": "1"},
        {"default": True},
        True,
        None,
        "0.5",
        [1, 2],
        object(),
        {"default": 1, "text": "x" * 70_000},
    ],
)
def test_refused(value):
    with pytest.raises(InvalidMetric):
        metric_text(value)


def test_the_place_of_the_fault_is_named():
    with pytest.raises(InvalidMetric, match=r"\['deep'\]\[0\].*must be finite, not nan"):
        metric_text({"default": 1, "deep": [math.nan]})


def test_an_array_is_no_number():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(InvalidMetric, match="one number"):
        metric_text(numpy.zeros(3))
    with pytest.raises(InvalidMetric, match="finite"):
        metric_text(numpy.float32("nan"))


def test_errors_keep_their_module_of_version_0_1() -> None:
    """Trials import them by it, and so does what a process of that version imports late, whose
    ``trial_runtime.errors`` has none of them."""
    own = {name for name, it in vars(api_errors).items() if it.__class__ is type}
    own.discard("TrialRuntimeError")
    assert len(own) == 9
    assert not own & vars(errors).keys()
