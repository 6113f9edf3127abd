"""Names and values of any kind, as trackers get them."""

from __future__ import annotations

import doctest
import math
import posixpath
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.sinks import naming
from dispatcher.sinks.mlflow import sink as mlflow
from dispatcher.sinks.mlflow.sink import taken_name
from dispatcher.sinks.naming import as_float, flat_numbers, flat_parameters, shortened, shown_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_the_examples_hold() -> None:
    assert doctest.testmod(naming).failed == 0
    assert doctest.testmod(mlflow).failed == 0


@given(st.text())
def test_a_name_is_printable_and_short_and_stays_another(text: str) -> None:
    short = shortened(text)
    assert short.isprintable()
    assert len(short) <= naming.MOST_NAME
    if short != text:
        assert short != shortened(f"{text}x")


def test_long_names_that_begin_alike_stay_two() -> None:
    assert shortened("x" * 10_000) != shortened("x" * 9_999)
    assert len(shortened("x" * 10_000)) <= 200


@given(st.dictionaries(st.text(), JSON))
def test_parameters_are_bounded_and_plain(parameters: dict[str, object]) -> None:
    flat = flat_parameters(parameters)
    assert len(flat) <= naming.MOST_PARAMETERS
    for name, value in flat.items():
        assert name.isprintable()
        assert isinstance(value, bool | float | str)
        assert not isinstance(value, str) or len(value) <= naming.MOST_TEXT


@given(JSON, st.none() | st.floats())
def test_numbers_are_numbers(value: object, number: float | None) -> None:
    flat = flat_numbers(value, number)
    assert all(isinstance(each, float) for each in flat.values())
    assert ("default" in flat) == (number is not None)


@pytest.mark.parametrize(
    "number, expected", [(10**400, math.inf), (-(10**400), -math.inf), (3, 3.0)]
)
def test_whole_numbers_of_any_size(number: int, expected: float) -> None:
    assert as_float(number) == expected


def test_texts_are_cut_with_a_sign() -> None:
    assert shown_text("a\x1b[2Jb") == "a�[2Jb"
    assert shown_text("y" * 1000).endswith("…")
    assert len(shown_text("y" * 1000)) == naming.MOST_TEXT


@given(st.text())
def test_names_for_mlflow_are_what_its_server_takes(text: str) -> None:
    """As its own check has it: some characters, and no other name when read as a path."""
    name = taken_name(text)
    assert re.fullmatch(r"[/\w.\- :]+", name), name
    normal = posixpath.normpath(name)
    assert normal == name
    assert not normal.startswith(("..", "/"))
    assert normal != "."
    assert len(name) <= 250
