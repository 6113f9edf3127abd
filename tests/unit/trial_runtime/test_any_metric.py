"""Metrics of code written for NNI: any JSON value, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from trial_runtime.agent.trials.bounds import metric_fault
from trial_runtime.api_errors import InvalidMetric
from trial_runtime.nni_shim.any_metric import any_metric_text


@pytest.mark.parametrize(
    "value",
    [1, 0.5, True, None, "text", {"accuracy": [1, 2.5]}, [{"a": None}], {"default": 1}],
)
def test_json_values_go_as_they_are(value: Any) -> None:
    text = any_metric_text(value, limit=1000)
    assert text is not None
    assert json.loads(text) == value
    assert metric_fault(text, 1000, any_value=True) == ""


def test_numpy_goes_as_numbers_and_lists() -> None:
    assert any_metric_text(np.float32(0.5), limit=100) == "0.5"
    assert any_metric_text({"a": np.arange(3)}, limit=100) == '{"a":[0,1,2]}'


@pytest.mark.parametrize("value", [float("nan"), {"default": float("inf")}, [1, -np.inf]])
def test_what_is_not_finite_is_left_out(value: Any) -> None:
    assert any_metric_text(value, limit=1000) is None


def test_a_dict_with_a_finite_default_keeps_what_is_finite() -> None:
    value = {"default": 0.9, "loss": float("nan"), "deep": {"a": [1, np.inf]}, "epoch": 3}
    assert any_metric_text(value, limit=1000) == '{"default":0.9,"epoch":3}'
    assert any_metric_text({"loss": float("nan"), "epoch": 3}, limit=1000) is None


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidMetric, match="is no JSON value"):
        any_metric_text({"a": object()}, limit=1000)
    with pytest.raises(InvalidMetric, match="100 are allowed"):
        any_metric_text("x" * 200, limit=100)
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    with pytest.raises(InvalidMetric):
        any_metric_text(ring, limit=1000)


def test_the_door_takes_numbers_only_unless_told() -> None:
    assert metric_fault('"text"', 100)
    assert not metric_fault('"text"', 100, any_value=True)
    assert metric_fault("{", 100, any_value=True)
    assert metric_fault('"' + "x" * 200 + '"', 100, any_value=True)
