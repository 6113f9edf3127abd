"""Results of other experiments, as users bring them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dispatcher.control.imported import results_text
from dispatcher.errors import UserError


def test_values_may_be_json_within_json_as_nni_exports_them() -> None:
    rows: list[dict[str, Any]] = [
        {"parameter": {"x": 1}, "value": 0.5},
        {"parameter": {"x": 2}, "value": '{"default": 0.7}', "trialJobId": "abc"},
    ]
    assert json.loads(results_text(rows)) == [
        {"parameter": {"x": 1}, "value": 0.5},
        {"parameter": {"x": 2}, "value": {"default": 0.7}},
    ]


@pytest.mark.parametrize(
    "rows, said",
    [
        ([], "no result"),
        ([{"parameter": {}, "value": 1}, {"value": 1}], "result 2 has no 'parameter'"),
        ([{"parameter": {}}], "result 1 has no 'value'"),
        ([{"parameter": {}, "value": "good"}], "the value of result 1 is no JSON: 'good'"),
        ([{"parameter": {}, "value": float("nan")}], "are no JSON"),
    ],
)
def test_what_is_no_result_is_named(rows: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(UserError, match=said):
        results_text(rows)
