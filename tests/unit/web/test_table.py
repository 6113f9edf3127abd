"""Columns of trials: the narrowest kind that holds all, and the same row however it came."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.queries import FlatTrial
from dispatcher.web.answering import encoded
from dispatcher.web.table import FIXED, MOST_COLUMNS, MOST_TEXT, TrialTable


def trial(number: int, parent: int | None = None, **parameters: Any) -> FlatTrial:
    return FlatTrial(
        trial=number,
        state="ended",
        outcome="succeeded",
        parent=parent,
        value=0.5,
        created=1.0,
        started=2.0,
        ended=3.0,
        attempts=1,
        reports=0,
        latest=None,
        worker=None,
        pinned=0,
        tags=None,
        starred=0,
        notes=0,
        parameters=parameters,
        metrics={},
    )


def columns(table: TrialTable) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in table.described()["columns"]}


def test_kinds_are_as_narrow_as_they_can_be() -> None:
    table = TrialTable()
    table.put([trial(0, a=1, b=1, c="x", d=True, e=None)])
    table.put([trial(1, a=2, b=1.5, c="y", d=False, e=None)])
    found = columns(table)
    assert [found[name]["kind"] for name in "abcd"] == ["integer", "number", "choice", "choice"]
    assert found["c"]["choices"] == ["x", "y"]
    assert found["d"]["choices"] == ["true", "false"]
    assert [name for name in found if name not in FIXED] == list("abcde")


def test_digits_that_nobody_sees_are_left_out() -> None:
    table = TrialTable()
    third = 1 / 3
    one = replace(trial(0, a=third), value=third, latest=third, created=1.0 + third, ended=None)
    table.put([one])
    (row,) = table.rows([0])
    assert (row["latest"], row["created"], row["ended"]) == (0.3333333, 1.333, None)
    assert (row["value"], row["a"]) == (third, third)  # results and parameters keep all of theirs


def test_a_column_that_becomes_another_asks_for_the_table_again() -> None:
    table = TrialTable()
    assert table.put([trial(0, a=1)])
    assert not table.put([trial(1, a=2)])
    assert table.put([trial(2, a=2.5)])
    assert table.put([trial(3, a="big")])
    assert not table.put([trial(4, a="small")])
    assert columns(table)["a"]["choices"] == ["1", "2", "2.5", "big", "small"]
    assert columns(table)["a"]["values"] == [0, 1, 2, 3, 4]
    assert [row["a"] for row in table.rows([1, 3])] == ["2", "big"]


def test_many_different_texts_are_texts() -> None:
    table = TrialTable()
    for number in range(300):
        table.put([trial(number, a=f"text {number}")])
    found = columns(table)["a"]
    assert (found["kind"], "choices" in found) == ("text", False)
    assert found["values"] == [f"text {number}" for number in range(300)]


def test_generations_follow_parents() -> None:
    table = TrialTable()
    table.put([trial(0), trial(1, 0), trial(2, 1), trial(3, 0)])
    assert columns(table)["generation"]["values"] == [0, 1, 2, 1]


def test_columns_are_bounded_and_so_are_their_names() -> None:
    table = TrialTable()
    table.put([trial(0, **{f"p{number}": number for number in range(1_000)})])
    table.put([trial(1, **{"x" * 100_000: 1})])
    described = table.described()
    assert len(described["columns"]) == len(FIXED) + MOST_COLUMNS
    assert described["left_out"] == 801
    assert all(len(one["name"]) <= MOST_TEXT for one in described["columns"])


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.dictionaries(st.sampled_from("abstate"), _VALUES)),
        max_size=12,
    )
)
def test_a_row_is_the_same_whether_it_came_at_once_or_by_and_by(
    story: list[tuple[int, dict[str, Any]]],
) -> None:
    """Mutation: a value that stays from before, a choice with the number of another."""
    patched = TrialTable()
    newest: dict[int, FlatTrial] = {}
    for number, parameters in story:
        newest[number] = trial(number, **parameters)
        patched.put([newest[number]])
    anew = TrialTable()
    anew.put([newest[number] for number in dict.fromkeys(number for number, _ in story)])
    for row in patched.rows(newest):
        (other,) = anew.rows([row["trial"]])
        for name in row.keys() & other.keys():
            assert _same(row[name], other[name]), (name, row, other)
    json.loads(encoded(patched.described()))


def _same(one: Any, other: Any) -> bool:
    return bool(one == other or (one is not None and other is not None and str(one) == str(other)))


def test_a_parameter_is_not_taken_for_a_metric_of_its_name() -> None:
    """Mutation: one column for the parameter `metrics.loss` and the metric `loss`."""
    table = TrialTable()
    given = {"metrics.loss": 5, "value": 6, "parameters.value": 7}
    table.put([replace(trial(0, **given), metrics={"loss": 0.25})])
    (row,) = table.rows([0])
    assert row["metrics.loss"] == 0.25
    assert row["parameters.metrics.loss"] == 5
    assert (row["parameters.value"], row["parameters.parameters.value"]) == (6, 7)
