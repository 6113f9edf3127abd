"""JSON texts of a store, whatever stands in it."""

from __future__ import annotations

import pytest

from dispatcher.queries.records import json_value


@pytest.mark.parametrize("text", ["[" * 60_000, "[" * 2_000, "not json", '{"x": ', "NaN"])
def test_a_text_that_is_no_json_is_shown_as_it_is(text: str) -> None:
    """Mutation: deep nesting raises ``RecursionError``, and no trial is listed."""
    assert json_value(text) == text
