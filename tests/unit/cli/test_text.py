"""What people read: plain in a pipe, harmless whatever trials print."""

from __future__ import annotations

import doctest
import importlib
import sqlite3
from pathlib import Path

import pytest
from rich.panel import Panel
from rich.text import Text

from dispatcher.cli.closing import print_closing
from dispatcher.cli.failure import report, report_internal
from dispatcher.core.model import Phase
from dispatcher.errors import UserError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.safe_text import safe_lines, safe_text
from dispatcher.store import SqliteJournal
from dispatcher.store.leadership import Leadership
from dispatcher.terminal import console
from dispatcher.terminal.marked_lines import MarkedLine, show_marked
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import evolve, make_folder


@pytest.mark.parametrize("name", ["terminal.formatting", "safe_text"])
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"dispatcher.{name}"))
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize(
    "evil",
    ["\x1b]0;title\x07", "\x9b2J", "a\x08b", "\u202eevil", "\x7f", "\udcff", "a\rb"],
)
def test_nothing_a_terminal_would_obey_is_left(evil: str) -> None:
    harmless = safe_text(evil)
    assert all(character.isprintable() for character in harmless)
    harmless.encode()


def test_text_and_emoji_stay_as_they_are() -> None:
    assert safe_text("größe 🙂\tx") == "größe 🙂\tx"


def test_a_progress_bar_leaves_its_last_state() -> None:
    assert safe_lines("a\r\nb 1%\rb 2%\nc") == "a\nb 2%\nc"


@pytest.mark.parametrize(
    "words",
    [("status",), ("best",), ("lineage",), ("trial", "ls"), ("trial", "show", "11"), ("why",)],
    ids=" ".join,
)
def test_a_pipe_gets_no_escapes(words: tuple[str, ...], over: Shell) -> None:
    said = over(*words)
    assert said.code == 0, said.err
    assert said.out
    assert "\x1b" not in said.out + said.err


def test_tables_in_a_pipe_are_whole_and_aligned(over: Shell) -> None:
    lines = over("trial", "ls").out.splitlines()
    assert lines[0].split() == ["trial", "state", "result", "parent", "took", "parameters"]
    assert len(lines) >= 41
    column = lines[0].index("parameters")
    assert all(line[column - 1] == " " for line in lines[1:] if len(line) > column)


def test_one_that_runs_for_the_first_time_took_nothing_yet(home: Path, bequeath: Shell) -> None:
    """Mutation: it is said to have taken 0.0 s."""
    folder = make_folder(home)
    evolve(folder, 3)
    with sqlite3.connect(folder / "journal.sqlite") as store:
        store.execute("UPDATE trials SET state = 'running', outcome = NULL, wall_s = 0")
    rows = bequeath("trial", "ls").out.splitlines()[1:]
    assert len(rows) >= 3
    assert not [row for row in rows if "0.0 s" in row]


def test_a_trial_in_words(over: Shell) -> None:
    text = over("trial", "show", 11).out
    assert text.startswith("trial 11  failed\n")
    assert "Traceback: out of luck" in text
    assert "parameters\n" in text


def test_lineage_can_start_anywhere(over: Shell) -> None:
    whole = over("lineage").out.splitlines()
    root = next(line.split()[0] for line in whole if "─" not in line)
    part = over("lineage", "--trial", root).out.splitlines()
    assert part[0].split()[0] == root
    assert len(part) <= len(whole)


def test_pictures(over: Shell, tmp_path: Path) -> None:
    for kind in ("progress", "parallel", "lineage"):
        path = tmp_path / f"{kind}.png"
        said = over("plot", kind, "--out", path)
        assert said.code == 0, said.err
        assert path.read_bytes().startswith(b"\x89PNG")
    assert over("lineage", "--png", tmp_path / "tree.png").out == ""
    said = over("plot", "progress", "--out", tmp_path / "no" / "where.png")
    assert said.code == 3


def test_export(over: Shell, tmp_path: Path) -> None:
    rows = over("experiment", "export").json()
    table = over("experiment", "export", "--format", "csv").out.splitlines()
    assert len(table) == len(rows) + 1
    out = tmp_path / "trials.csv"
    said = over("experiment", "export", "--format", "csv", "--out", out)
    assert out.read_text().splitlines() == table
    assert said.out == ""
    assert over("experiment", "export", "--out", tmp_path / "no" / "where").code == 3


def test_doctor_names_what_it_looked_at(over: Shell) -> None:
    text = over("doctor").out
    for topic in ("python", "packages", "torch", "sockets", "experiments", "open files", "clock"):
        assert topic in text


ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202e"


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_whatever_prints_makes_it_harmless(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mutation: callers that have to remember it."""
    monkeypatch.setattr(console, "is_terminal", lambda stream=None: terminal)
    marked = MarkedLine("!", "red", f"word{ESCAPES}", f"topic{ESCAPES}", f"text{ESCAPES}", ESCAPES)
    column = console.Column("title")
    for act in (
        lambda: console.say(f"{ESCAPES} two\n{ESCAPES}"),
        lambda: console.note(ESCAPES),
        lambda: console.say(console.heading(ESCAPES) + ESCAPES),
        lambda: console.emit(console.styled(ESCAPES, fg="red"), ESCAPES, err=True),
        lambda: console.print_facts([("name", ESCAPES)]),
        lambda: console.print_table([column], [(ESCAPES,)]),
        lambda: console.print_json({ESCAPES: ESCAPES}),
        lambda: console.console().print(Panel(Text(ESCAPES), title=ESCAPES), ESCAPES),
        lambda: show_marked([marked]),
        lambda: report(UserError(ESCAPES, hint=ESCAPES, where=ESCAPES)),
        lambda: report_internal(ValueError(ESCAPES)),
    ):
        act()
        said = "".join(capsys.readouterr())
        assert said.strip()
        assert not [mark for mark in ("\x1b]0;owned", "\x1b[2J", "\u202e", "\x07") if mark in said]


def test_data_in_a_pipe_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console.pass_on("a,\u202eb\r\n")
    assert capsys.readouterr().out == "a,\u202eb\r\n"
    monkeypatch.setattr(console, "is_terminal", lambda stream=None: True)
    console.pass_on("a,\u202eb\r\n")
    assert capsys.readouterr().out == "a,�b␍\n"


def test_a_mistake_on_the_command_line_is_harmless(bequeath: Shell) -> None:
    said = bequeath("convert", __file__, "--to", f"x{ESCAPES}")
    assert said.code == 2
    assert "\u202e" not in said.err
    said = bequeath("experiment", "delete", f"./x{ESCAPES}")
    assert "\x1b" not in said.err


def test_why_it_ended_is_told_harmlessly(home: Path, bequeath: Shell) -> None:
    """As after a tuner that raises with escapes in its words."""
    folder = make_folder(home, f"name{ESCAPES}")
    evolve(folder, 2)
    journal = SqliteJournal.open(folder / "journal.sqlite")
    journal.record_end(1, "failed", f"the tuner died: {ESCAPES}")
    journal.close()
    said = [bequeath(*words) for words in (("status",), ("why",), ("experiment", "list"))]
    for one in said:
        assert one.code == 0, one
        assert "␛]0;owned" in one.out
        assert not [mark for mark in ("\x1b", "\u202e", "\x07") if mark in one.out + one.err]


def test_the_end_in_the_foreground_is_told_harmlessly(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(home, f"name{ESCAPES}")
    evolve(folder, 2)
    Leadership.acquire(folder).release()
    journal = SqliteJournal.open(folder / "journal.sqlite")
    journal.record_end(1, "failed", f"the tuner died: {ESCAPES}")
    journal.close()
    print_closing(ExperimentHandle(folder), Phase.FAILED, 1.0, as_json=False)
    said = capsys.readouterr().out
    assert said.count("␛]0;owned") == 2
    assert not [mark for mark in ("\x1b", "\u202e", "\x07") if mark in said]


@pytest.mark.parametrize("word", ["failed", "succeeded", "open", "Failed", "stopped-early"])
def test_trials_are_listed_by_what_the_column_shows(over: Shell, word: str) -> None:
    trials = over("trial", "ls", "--state", word, "--json").json()["trials"]
    shown = {one["outcome"] or one["state"] for one in trials}
    assert shown == (set() if word == "stopped-early" else {word.lower()})


def test_short_help(over: Shell) -> None:
    for words in ((), ("trial",), ("trial", "ls")):
        assert over(*words, "-h").out == over(*words, "--help").out
