"""Tables on terminals that are too narrow for them."""

from __future__ import annotations

import re

import pytest

from dispatcher.cli.experiment import verbs as experiment_verbs
from dispatcher.cli.trial import table
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, fitted, fitted_lines

TRIALS = table.COLUMNS
EXPERIMENTS = experiment_verbs.COLUMNS
NETWORK = 'rate=0.0563696 blocks=[{"id": 0, "width": 4, "kernel": 3}, {"id": 1, "width": 8}]'


def _drawn(columns: tuple[Column, ...], rows: list[tuple[str, ...]], width: int) -> list[str]:
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", one) for one in fitted_lines(columns, rows, width)]
    assert all(len(line) <= width for line in lines)
    return lines


def test_parameters_give_way_and_never_the_trials_number() -> None:
    rows = [
        (str(1000 + n), "succeeded", "0.160712", "999", "1m 02s", NETWORK + NETWORK)
        for n in range(3)
    ]
    head, *lines = _drawn(TRIALS, rows, 80)
    assert head.split() == ["trial", "state", "result", "parent", "took", "parameters"]
    for n, line in enumerate(lines):
        assert line.split()[:6] == [str(1000 + n), "succeeded", "0.160712", "999", "1m", "02s"]
        assert "rate=0.05" in line
        assert line.rstrip().endswith("…")


@pytest.mark.parametrize(
    "value, shown",
    [
        ([{"op": "conv", "width": 32}, {"op": "po\nol"}], "[(op=conv width=32), (op=po␊ol)]"),
        ([{"_name": "conv", "kernel": 3}, {"_name": "pool"}], "[conv(kernel=3), pool]"),
        ([{"ops": [{"op": "pool"}], "width": 0.25}], "[(ops=[(op=pool)] width=0.25)]"),
        (["conv", 8, None, {}], "[conv, 8, null, {}]"),
        ([], "[]"),
    ],
)
def test_a_list_of_blocks_is_one_short_text(value: list[object], shown: str) -> None:
    """Mutation: a block is shown as JSON, three times as long."""
    assert formatting.value(value) == shown


def test_the_list_of_experiments_keeps_what_tells_them_apart() -> None:
    row = (
        "digits-evolution-of-the-third-kind-ab23cd",
        "digits-evolution-of-the-third-kind",
        "completed",
        "2026-11-22 18:30",
        "200",
        "0.986432",
        "/home/somebody/a/long/way/down/to/the/experiments",
    )
    head, line = _drawn(EXPERIMENTS, [row], 80)
    for title, cell in (("id", row[0]), ("status", row[2]), ("trials", row[4]), ("best", row[5])):
        assert title in head
        assert cell in line


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_what_cannot_shrink_is_as_wide_as_it_is(width: int) -> None:
    columns = (Column("trial", right=True), Column("state"), Column("where", shrink=True))
    widths = fitted(columns, [("12345678", "succeeded", "x" * 50)], width)
    assert widths[:2] == [8, 9]
    assert widths[2] == {20: 0, 40: 17, 60: 37}.get(width, 50)


def test_columns_in_which_nothing_stands_go_first() -> None:
    columns = (Column("trial"), Column("parent"), Column("parameters", shrink=True))
    assert fitted(columns, [("1", "–", "x" * 70)], 80)[1] == 0
    assert fitted(columns, [("1", "–", "x" * 10)], 80)[1] == 6


@pytest.mark.parametrize("width", [30, 40])
def test_numbers_and_states_are_whole_where_little_else_has_room(width: int) -> None:
    trial = ("123456", "succeeded", "0.160712", "99", "1m 02s", NETWORK)
    _, line = _drawn(TRIALS, [trial], width)
    assert line.split()[:2] == ["123456", "succeeded"]
    assert "…" not in line
    experiment = ("hello-ab23cd", "hello", "interrupted", "2026-11-22", "200", "0.986432", "/srv")
    _, line = _drawn(EXPERIMENTS, [experiment], width)
    assert line.split()[:2] == ["hello-ab23cd", "interrupted"]
    assert "…" not in line


def test_wide_characters_take_two_columns_and_tabs_one() -> None:
    """Mutations: characters are counted; a tab moves what follows."""
    columns = (Column("trial"), Column("text", shrink=True))
    cut, whole, tab = _drawn(columns, [("1", "漢字" * 20), ("2", "漢字"), ("3", "a\tb")], 20)[1:]
    assert cut == "1       漢字漢字漢…"
    assert whole == "2       漢字"
    assert tab == "3       a b"
