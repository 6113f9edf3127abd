"""Tables on terminals that are too narrow for them."""

from __future__ import annotations

import io
import re
import sys
from contextlib import suppress
from typing import cast

import pytest
import rich.cells

from dispatcher.cli import lineage
from dispatcher.cli.experiment import verbs as experiment_verbs
from dispatcher.cli.main import main
from dispatcher.cli.trial import table
from dispatcher.errors import UserError
from dispatcher.queries import TrialSummary
from dispatcher.terminal import console, formatting
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


def test_one_long_text_fills_no_other_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Mutation: each cell in a pipe is filled up to the longest one: rows times megabytes."""
    rows = [("x" * 100_000, "1"), *(("y", str(n)) for n in range(100))]
    console.print_table((Column("text"), Column("trial")), rows)
    out = capsys.readouterr().out
    assert out.splitlines()[1] == f"{'x' * 100_000}  1"
    assert len(out) < 130_000


def test_what_no_terminal_shows_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: a text of megabytes is gone through, character by character, to be cut to 20."""
    measured = []
    cells = rich.cells.cell_len

    def measure(text: str) -> int:
        measured.append(len(text))
        return cells(text)

    monkeypatch.setattr(rich.cells, "cell_len", measure)
    _, line = _drawn((Column("trial"), Column("text", shrink=True)), [("1", "漢" * 100_000)], 20)
    assert line == "1       漢漢漢漢漢…"
    assert max(measured) <= 80


def test_a_program_without_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `bequeath trial ls >&-` has it. Mutation: it is asked whether it is a terminal."""
    monkeypatch.setattr(sys, "stdout", None)
    assert not console.is_terminal()
    console.print_table((Column("trial"),), [("1",)])
    console.pass_on("text")
    console.pass_on_bytes(b"bytes")


def test_an_encoding_that_lacks_our_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: "–" for nothing ends `trial ls` as a fault of ours where the locale is Latin-1."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "argv", ["bequeath", "--version"])
    with pytest.raises(SystemExit):
        main()
    console.say("–")
    assert stream.buffer.getvalue().endswith(b"?\n")
    assert lineage.shows_ascii_only()


def test_numbers_in_columns_that_were_asked_for_are_never_cut() -> None:
    """Mutation: 1.23457e+08 is shown as `1.234…`."""
    names = [f"p{n}" for n in range(9)]
    cells = [[123456789.0 * (n + 1) for n in range(8)] + ["text " * 20]]
    columns, rows = table.table_of(",".join(names), [cast("TrialSummary", None)], cells)
    _, line = _drawn(tuple(columns), [tuple(row) for row in rows], 80)
    assert "…" not in line
    assert line.split() == [f"{cell:.6g}" for cell in cells[0][:6]]


def test_output_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: `bequeath trial ls > FILE` on a full disk is called a fault of bequeath itself."""
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stdout", full)
        for write in (console.say, console.pass_on):
            with pytest.raises(UserError, match="output cannot be written: No space"):
                write("text\n")
        with suppress(OSError):
            full.close()
