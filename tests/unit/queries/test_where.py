"""Conditions on trials: read with the place of each mistake, bounded, and as SQLite carries them
out."""

from __future__ import annotations

import json
import operator
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bequeath as bq
from dispatcher.errors import UserError
from dispatcher.queries import ExperimentReader, named_columns, unknown_parameters, where
from dispatcher.queries.where import COLUMNS, WhereError, parse_condition
from tests.unit.queries.evolution import evolve, make_folder

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def matching(condition: str, *rows: dict[str, Any]) -> list[int]:
    """The places of the rows for which a condition holds, by SQLite itself."""
    names = sorted({*COLUMNS.values(), "parameters", "told", "final"})
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"CREATE TABLE trials ({', '.join(names)})")
        for place, row in enumerate(rows):
            values = {"id": place, "parameters": "", **row}
            marks = ", ".join("?" * len(values))
            connection.execute(
                f"INSERT INTO trials ({', '.join(values)}) VALUES ({marks})", [*values.values()]
            )
        text, values_of_it, _ = parse_condition(condition)
        query = f"SELECT id FROM trials WHERE {text} ORDER BY id"
        return [row[0] for row in connection.execute(query, values_of_it)]
    finally:
        connection.close()


def of(**parameters: Any) -> dict[str, str]:
    return {"parameters": json.dumps(parameters)}


ROWS = (
    {"state": "ended", "outcome": "succeeded", "number": 0.9, "told": '{"loss": 0.2}'}
    | of(lr=0.001, optimizer="adam", block={"kernel": 3}, blocks=[{"op": "sep5"}], deep=True),
    {"state": "ended", "outcome": "failed", "error": "out of memory"}
    | of(lr=0.1, optimizer="sgd", block={"kernel": 5}, blocks=[], deep=False),
    {"state": "running", "parent": 0} | of(lr="auto", optimizer=None, state="x"),
    {"state": "open"},
)


@pytest.mark.parametrize(
    "condition,expected",
    [
        ("", [0, 1, 2, 3]),
        ("lr<0.01", [0]),
        ("lr<0.01 and optimizer=adam and outcome!=failed", [0]),
        ("lr > 0", [0, 1]),
        ("lr = auto", [2]),
        ("lr >= 'a'", [2]),
        ("outcome != failed", [0, 2, 3]),
        ("not outcome = failed", [0, 2, 3]),
        ("outcome = null", [2, 3]),
        ("not (outcome = null or outcome = failed)", [0]),
        ("optimizer = null", [2, 3]),
        ("block.kernel in (3, 7)", [0]),
        ("blocks[0].op = sep5", [0]),
        ("deep = true", [0]),
        ("deep != true", [1, 2, 3]),
        ("error ~ memory", [1]),
        ("error ~ 'of mem'", [1]),
        ("state = running", [2]),
        ("parameters.state = x", [2]),
        ("metrics.loss < 0.5", [0]),
        ("value > 0.5", [0]),
        ("trial >= 2", [2, 3]),
        ("trial = 1 OR lr = auto AND parent = 0", [1, 2]),
        ("(trial = 1 or lr = auto) and parent = 0", [2]),
        ("nothing < 3 or not nothing < 3", [0, 1, 2, 3]),
        ("lr = 1e-3", [0]),
        ("optimizer in ('adam', sgd)", [0, 1]),
        ("lr = 99999999999999999999", []),
    ],
)
def test_what_holds(condition: str, expected: list[int]) -> None:
    assert matching(condition, *ROWS) == expected


@pytest.mark.parametrize(
    "name,key",
    [("`conv.kernel`", "conv.kernel"), ("größe", "größe"), ("`a b`", "a b"), ("w-decay", "w-decay"),
     ("`and`", "and"), ("`it's`", "it's"), ("`a``b`", "a`b"), ("parameters.`a b`", "a b"),
     ("conv.kernel", "conv.kernel"), ("parameters.größe.y", "größe.y")],
)  # fmt: skip
@pytest.mark.parametrize("ascii_only", [True, False])
def test_names_of_any_kind(name: str, key: str, ascii_only: bool) -> None:
    text = json.dumps({key: 3}, ensure_ascii=ascii_only)
    assert matching(f"{name} = 3", {"parameters": text}, of(other=3)) == [0]


def test_a_dot_may_belong_to_a_name() -> None:
    """Mutations: the nested one comes first; a quoted part is split; places are no keys."""
    both = of(**{"opt.lr": 1, "opt": {"lr": 2, "a.b": 3}, "opt.layers": [{"k.x": 4}]})
    nested = of(opt={"lr": 1})
    for condition, expected in (
        ("opt.lr = 1", [0, 1]),
        ("opt.lr = 2", []),
        ("opt.`lr` = 2", [0]),
        ("`opt.lr` = 1", [0]),
        ("parameters.`opt.lr` = 1", [0]),
        ("opt.`a.b` = 3", [0]),
        ("opt.a.b = 3", []),
        ("opt.layers[0].k.x = 4", [0]),
        ("`opt.layers`[0].`k.x` = 4", [0]),
    ):
        assert matching(condition, both, nested) == expected, condition
    assert matching("metrics.mAP@0.5 > 0", {"told": '{"mAP@0.5": 1}'}) == [0]


@pytest.mark.parametrize(
    "condition,column,part",
    [
        ("lr <", 5, "a value is missing after '<'"),
        ("lr < and x = 1", 6, "a value is missing after '<'"),
        ("lr", 3, "a comparison is missing after 'lr'"),
        ("lr 3", 4, "a comparison is missing after 'lr'"),
        ("< 3", 1, "a name is missing before '<'"),
        ("lr < 3 and", 11, "a name is missing at the end"),
        ("outcome = timed out", 17, "'and' or 'or' is missing before 'out'"),
        ("(lr < 3", 1, "the bracket that opens here is not closed"),
        ("lr < 3)", 7, "this bracket closes nothing"),
        ("x = 'abc", 5, "has no end"),
        ("x = 1 && y = 2", 7, "means nothing here"),
        ("x ! 1", 3, "means nothing here"),
        ("x in 3", 6, "values in brackets"),
        ("x in (1, 2", 6, "not closed"),
        ("x in (1,)", 9, "a value is missing after ','"),
        ("x < null", 3, "null is compared by = and != only"),
        ("3x = 1", 1, "'3x' is no name"),
        ("a..b = 1", 1, "is no name"),
        ('`a"b` = 1', 1, "names with quotes"),
        ("x = 1e999", 5, "too large"),
        ("x = 'a\0b'", 7, "cannot be in a text"),
        ("x = '\ud800'", 6, "cannot be in a text"),
        ("; drop table trials", 1, "';' means nothing here"),
    ],
)
def test_mistakes_are_shown_where_they_are(condition: str, column: int, part: str) -> None:
    with pytest.raises(WhereError) as refused:
        parse_condition(condition)
    assert part in refused.value.message
    assert (refused.value.column, refused.value.where) == (column, f"where:{column}")
    assert refused.value.hint


@pytest.mark.parametrize(
    "condition,part",
    [
        ("x" * (where.MOST_CHARACTERS + 1), "characters"),
        (" or ".join(["x=1"] * (where.MOST_COMPARISONS + 1)), "comparisons"),
        (f"x in ({', '.join(['1'] * (where.MOST_COMPARISONS + 1))})", "comparisons"),
        ("(" * 21 + "x=1" + ")" * 21, "levels"),
        ("not " * 21 + "x=1", "levels"),
    ],
    ids=["long", "comparisons", "in", "brackets", "not"],
)
def test_each_bound(condition: str, part: str) -> None:
    with pytest.raises(WhereError, match=part):
        parse_condition(condition)


def test_parameters_that_no_trial_has_are_named(tmp_path: Path) -> None:
    """Mutation: a column that is misspelt lets everything through, and nobody says so."""
    folder = make_folder(tmp_path)
    evolve(folder, 3)
    with ExperimentReader.open(folder) as reader:

        def unknown(condition: str) -> dict[str, str]:
            return unknown_parameters(reader, parse_condition(condition).parameters)

        assert unknown("outcme!=failed and lr<1 and `a b`=1") == {"outcme": "outcome", "a b": ""}
        assert unknown("outcome!=failed and metrics.nothing>1 and lr<1") == {}
        assert unknown("") == {}


def test_a_metric_by_its_mere_name_is_shown_as_it_is_written(tmp_path: Path) -> None:
    """Mutation: only columns are offered, and somebody looks for the number in vain."""
    with bq.Study({"x": bq.uniform(0, 1)}, tuner="Random", folder=tmp_path / "s") as study:
        study.tell(study.ask(), {"default": 0.5, "log_size": 3})
    with ExperimentReader.open(tmp_path / "s") as reader:
        parameters = parse_condition("log_size<4 and size>1").parameters
        assert unknown_parameters(reader, parameters) == {
            "log_size": "metrics.log_size",
            "size": "",
        }
        with pytest.raises(UserError) as raised:
            named_columns(reader, "log_size")
        assert raised.value.hint == "did you mean 'metrics.log_size'?"


def test_what_the_bounds_allow_sqlite_carries_out() -> None:
    many = " or ".join(["größe=1"] * where.MOST_COMPARISONS)
    assert matching(many, of(größe=1)) == [0]
    assert matching("(" * 20 + "x=1" + ")" * 20, of(x=1)) == [0]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    """Mutation: a character that no token takes, or an error without its place."""
    column = 1
    try:
        matching(text, *ROWS)
    except WhereError as error:
        column = error.column
    assert 1 <= column <= len(text) + 1


_PIECES = st.sampled_from(
    ["lr", "state", "`x`", "=", "!=", "<", "~", "in", "(", ")", ",", "and", "or", "not", "1",
     "'a'", "null", "true", "metrics.loss", "b[1].k", "b.`c.d`"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=14))
def test_whatever_is_read_is_sql(pieces: list[str]) -> None:
    try:
        matching(" ".join(pieces), *ROWS)
    except WhereError:
        return


_SCALARS = (
    st.integers(-5, 5)
    | st.floats(-3, 3)
    | st.sampled_from(["adam", "a b", "Ä", ""])
    | st.booleans()
    | st.none()
)


@given(_SCALARS, st.sampled_from(["=", "!=", *_ORDERS]), _SCALARS)
def test_comparisons_are_those_of_python(
    mine: float | str | bool | None, sign: str, theirs: float | str | bool | None
) -> None:
    typed = f"'{theirs}'" if isinstance(theirs, str) else json.dumps(theirs)
    if theirs is None and sign in _ORDERS:
        return
    if sign in _ORDERS:
        alike = mine is not None and isinstance(mine, str) is isinstance(theirs, str)
        expected = alike and _ORDERS[sign](mine, theirs)
    else:
        expected = (mine == theirs) is (sign == "=")
    assert matching(f"x {sign} {typed}", of(x=mine)) == ([0] if expected else [])
