"""Tables of trials: chosen columns, rows and order, a bound, and the pager of a terminal."""

from __future__ import annotations

import os
import pty
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.cli.trial import table
from dispatcher.safe_text import SafeText
from dispatcher.terminal.pager import why_not_in_pager
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import evolve, make_folder


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_columns_are_those_that_were_asked_for(over: Shell) -> None:
    """Mutation: a column from the wrong trial, or from a wrong place."""
    whole = {one["id"]: one for one in over("trial", "ls", "--json").json()["trials"]}
    said = over("trial", "ls", "--columns", "result,trial,lr,outcome,wall_s", "--sort", "result")
    titles, *rows = _rows(said.out)
    assert titles == ["result", "trial", "lr", "outcome", "wall_s"]
    assert len(rows) == len(whole)
    for value, number, lr, outcome, wall_s in rows:
        one = whole[int(number)]
        assert value == ("–" if one["value"] is None else f"{one['value']:.6g}")
        wanted = (one["parameters"] or {}).get("lr")
        assert lr == ("–" if wanted is None else f"{wanted:.6g}")
        assert outcome == (one["outcome"] or "–")
        assert float(wall_s) == pytest.approx(one["wall_s"], rel=1e-4)
    values = [float(row[0]) for row in rows if row[0] != "–"]
    assert values == sorted(values, reverse=True)  # the best first


def test_names_of_columns_serve_conditions_and_orders(over: Shell) -> None:
    """The words at the head of the table are understood wherever columns are named."""
    said = over("trial", "ls", "--where", "result>0.5 and took>=0", "--columns", "result,took")
    assert said.code == 0, said.err
    assert all(float(row[0]) > 0.5 for row in _rows(said.out)[1:])
    by = over("trial", "ls", "--sort", "lr", "--columns", "lr", "--limit", 5)
    values = [float(row[0]) for row in _rows(by.out)[1:]]
    assert values == sorted(values)
    down = over("trial", "ls", "--sort", "lr", "--reverse", "--columns", "lr", "--limit", 5)
    falling = [float(row[0]) for row in _rows(down.out)[1:]]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] > values[-1]


def test_json_has_the_columns_as_cells(over: Shell) -> None:
    answer = over("trial", "ls", "--json", "--columns", "trial,lr", "--limit", 3).json()
    assert [cell[0] for cell in answer["cells"]] == [one["id"] for one in answer["trials"]]
    assert over("trial", "ls", "--json", "--limit", 3).json()["cells"] == []


def test_the_best_are_chosen_by_a_condition(over: Shell) -> None:
    best = over("best", "--json", "--limit", 1).json()["trials"][0]
    said = over("best", "--where", f"trial!={best['id']}", "--columns", "trial,result,lr")
    titles, first, *_ = _rows(said.out)
    assert titles == ["trial", "result", "lr"]
    assert int(first[0]) != best["id"]
    assert float(first[1]) <= best["value"]
    none = over("best", "--where", "trial>1000")
    assert (none.code, none.out) == (0, "")
    assert "no such trial" in none.err


@pytest.mark.parametrize(
    "words, wrong, right",
    [
        (("--columns", "trial,rl"), "no trial has a column or parameter 'rl'", "lr"),
        (("--columns", "trial,outcme"), "'outcme'", "did you mean 'outcome'?"),
        (("--columns", "trial lr"), "columns:7: a comma is missing before 'lr'", "lr,block.kernel"),
        (("--columns", "trial,"), "columns:7: a name is missing at the end", "with commas"),
        (("--sort", "outcme"), "cannot be sorted by 'outcme'", "did you mean 'outcome'?"),
        (("--sort", "trial,lr"), "sorted by one column", "write one of id, value"),
        (("--where", "lr<"), "where:4: a value is missing after '<'", "write it as in: lr<0.01"),
        (("--where", "lr 0.1"), "where:4: a comparison is missing after 'lr'", "one of = !="),
    ],
    ids=lambda one: "-".join(one) if isinstance(one, tuple) else "",
)
def test_what_cannot_be_read_is_said_once(
    over: Shell, words: tuple[str, str], wrong: str, right: str
) -> None:
    said = over("trial", "ls", *words)
    assert said.code == 3
    assert said.out == ""
    assert wrong in said.err
    assert right in said.err
    assert said.err.count(wrong) == 1


def test_a_negative_limit_says_what_to_write(over: Shell) -> None:
    said = over("trial", "ls", "--limit", "-3")
    assert said.code == 2
    text = " ".join(said.err.replace("│", " ").split())
    assert "-3 is no number of trials: write how many, or 0 for all" in text


def test_a_table_has_a_bound_and_says_so(over: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutations: --json is cut too; --limit 0 is; a list of just as many is called cut."""
    many = len(over("trial", "ls", "--json").json()["trials"])
    monkeypatch.setattr("dispatcher.cli.trial.verbs.MOST_ROWS", 10)
    cut = over("trial", "ls")
    assert len(cut.out.splitlines()) == 11
    assert "the first 10 trials; --limit 0 shows all" in cut.err
    assert len(over("trial", "ls", "--json").json()["trials"]) == many
    for words in (("--limit", 0), ("--limit", many)):
        whole = over("trial", "ls", *words)
        assert len(whole.out.splitlines()) == many + 1
        assert whole.err == ""
    monkeypatch.setattr("dispatcher.cli.trial.verbs.MOST_ROWS", many)
    assert over("trial", "ls").err == ""


Screen = Callable[..., list[str]]


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    """A command on a real terminal of 80 columns, over ten thousand trials with long parameters."""
    folder = make_folder(tmp_path)
    evolve(folder, 1)
    with sqlite3.connect(folder / "journal.sqlite") as store:
        names = [row[1] for row in store.execute("PRAGMA table_info(trials)") if row[1] != "id"]
        store.execute(
            f"INSERT INTO trials (id, {', '.join(names)}) WITH RECURSIVE n(i) AS (SELECT 1000 "
            f"UNION ALL SELECT i + 1 FROM n WHERE i < 10999) SELECT i, "
            f"{', '.join(names)} FROM n, trials "
            "WHERE id = 0"
        )
        text = '{"rate": 0.5, "blocks": "' + 200 * "sep5 " + '"}'
        store.execute(
            "UPDATE trials SET parameters = ?, outcome = 'timed out', number = 0.123456", [text]
        )

    def run(*words: str, pager: str = "sed s/^/paged:/", note: str = "") -> list[str]:
        ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "PAGER": pager}
        process = subprocess.Popen(
            [sys.executable, "-m", "dispatcher.cli", *words, str(folder)],
            stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment,
        )  # fmt: skip
        os.close(theirs)
        told = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            told += part
        os.close(ours)
        notes = process.communicate(timeout=60)[1].decode()
        assert "Traceback" not in notes
        assert notes.startswith(note)
        assert process.returncode == 0
        return told.decode().replace("\r", "").splitlines()

    return run


def _plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def test_eighty_columns_show_number_state_and_result(screen: Screen) -> None:
    """On a real terminal, with parameters that are far too long for it; few rows need no pager."""
    titles, *lines = map(_plain, screen("trial", "ls", "-n", "20"))
    assert titles.split()[:3] == ["trial", "state", "result"]
    for line in lines:
        assert re.fullmatch(r" *\d+   timed out   0\.123456   .*…", line), line
    first, *leaders = map(_plain, screen("best", "-n", "20"))
    assert first.split()[:2] == ["result", "trial"]
    for line in leaders:
        assert re.fullmatch(r" *\d+   0\.123456 +\d+ .*…", line), line
    assert len(lines) == len(leaders) == 20
    assert all(len(line) <= 80 for line in (titles, first, *lines, *leaders))


def test_ten_thousand_go_through_the_pager_of_a_terminal(screen: Screen) -> None:
    """Mutations: a pager for --json or for few rows; none is an error."""
    lines = screen("trial", "ls")
    assert len(lines) == table.MOST_ROWS + 1
    assert all(line.startswith("paged:") for line in lines)
    for words, pager in (
        (("trial", "ls", "--no-pager"), "sed s/^/paged:/"),
        (("trial", "ls", "--json", "--limit", "3"), "sed s/^/paged:/"),
    ):
        plain = screen(*words, pager=pager)
        assert len(plain) > 3
        assert not any(line.startswith("paged:") for line in plain)


@pytest.mark.parametrize(
    "pager, why",
    [
        ("true", "the pager, true, ended with 0 and read nothing"),
        ("sh -c 'read a; exit 3'", "the pager, sh -c 'read a; exit 3', ended with 3"),
        ("sh -c 'kill $$'", "the pager, sh -c 'kill $$', was killed by signal 15 and read nothing"),
        ("no-such-program", "PAGER=no-such-program cannot be started: No such file or directory"),
        ("LESS=-S less", "PAGER=LESS=-S less cannot be started: No such file or directory"),
        ("less 'a", "PAGER=less 'a cannot be started: No closing quotation"),
        ("sh -c 'head -n 3 > \"a b\"'", None),
        ("", ""),
    ],
)
def test_why_a_pager_has_shown_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pager: str, why: str | None
) -> None:
    """Mutations: whatever was started has shown it; one that was left early is trouble; arguments
    are not read as a shell reads them."""
    monkeypatch.setenv("PAGER", pager)
    monkeypatch.chdir(tmp_path)
    assert why_not_in_pager(SafeText("a line\n" * 100_000)) == why
    assert why is not None or (tmp_path / "a b").read_text() == "a line\n" * 3


def test_a_pager_that_shows_nothing_loses_no_list(screen: Screen) -> None:
    """Mutation: the table is gone, and nobody says so."""
    why = "the pager, false, ended with 1 and read nothing; the table is printed instead\n"
    assert len(screen("trial", "ls", pager="false", note=why)) == table.MOST_ROWS + 1
