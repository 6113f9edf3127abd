"""Whose fault it was, as a number and a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher import errors
from dispatcher.cli import exit_codes
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.failure import report
from dispatcher.experiments import why
from dispatcher.store import SqliteJournal
from dispatcher.store.leadership import Leadership
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import evolve, make_folder


def test_each_code_has_its_meaning() -> None:
    assert set(exit_codes.MEANINGS) == set(ExitCode)


def test_each_base_of_errors_ends_in_a_documented_code() -> None:
    bases = [each for each in vars(errors).values() if isinstance(each, type)]
    codes = {each.exit_code for each in bases if issubclass(each, errors.DispatcherError)}
    assert codes == {
        ExitCode.GENERAL,
        ExitCode.USER,
        ExitCode.ENVIRONMENT,
        ExitCode.PROTOCOL,
        ExitCode.SUPERSEDED,
        ExitCode.INTERNAL,
    }


def test_an_error_is_place_sentence_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    error = errors.UserError("no such thing\x1b[2J", hint="make one", where="file.yml:3:1")
    assert report(error) is ExitCode.USER
    assert capsys.readouterr().err == "file.yml:3:1: no such thing␛[2J\n  make one\n"


def test_our_own_fault_shows_its_traceback(over: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Path) -> tuple[str, str]:
        raise errors.BrokenInvariant("a trial is in two places")

    monkeypatch.setattr(why, "explain", broken)
    said = over("why")
    assert said.code == ExitCode.INTERNAL
    assert "Traceback" in said.err
    assert "please report" in said.err


def test_ctrl_c_in_any_command(over: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(folder: Path) -> tuple[str, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(why, "explain", interrupted)
    assert over("why").code == ExitCode.INTERRUPTED


@pytest.mark.parametrize("command", ["status", "why", "best", "lineage"])
def test_nothing_to_look_at(command: str, bequeath: Shell) -> None:
    said = bequeath(command)
    assert said.code == ExitCode.USER
    assert said.err.endswith("there are no experiments yet\n  start one with: bequeath run FILE\n")


@pytest.mark.parametrize(
    "words",
    [("stop",), ("trial", "kill", "1"), ("trial", "submit", "{}")],
    ids=" ".join,
)
def test_nothing_runs(words: tuple[str, ...], over: Shell) -> None:
    said = over(*words)
    assert said.code == ExitCode.ENVIRONMENT
    assert said.err.startswith("no experiment is running\n")


def test_top_shows_the_newest_where_nothing_runs(over: Shell, evolved: Path) -> None:
    said = over("top")
    assert said.code == ExitCode.OK
    assert evolved.name in said.out
    assert over("top", "--json").json() == {"experiment": evolved.name, "snapshot": None}
    assert over("top", evolved.name).code == ExitCode.ENVIRONMENT  # that one was meant


def test_an_experiment_that_does_not_run_says_how_to_go_on(over: Shell, evolved: Path) -> None:
    for words in (("stop",), ("top",), ("trial", "kill", 1, "-e"), ("trial", "submit", "{}", "-e")):
        said = over(*words, evolved.name)
        assert said.code == ExitCode.ENVIRONMENT
        assert f"bequeath resume {evolved.name}" in said.err


def test_a_completed_experiment_is_not_to_be_resumed(home: Path, bequeath: Shell) -> None:
    folder = make_folder(home)
    evolve(folder, 3)
    with Leadership.acquire(folder) as lead:
        journal = SqliteJournal.open(folder / "journal.sqlite")
        journal.record_end(lead.epoch, "completed", "all 3 trials are over")
        journal.close()
    said = bequeath("stop", folder.name)
    assert said.code == ExitCode.ENVIRONMENT
    assert said.err.endswith(f"it is completed: see bequeath status {folder.name}\n")


def test_no_such_experiment_and_no_such_trial(over: Shell) -> None:
    assert over("status", "nonsense").code == ExitCode.USER
    said = over("trial", "show", 999)
    assert said.code == ExitCode.USER
    assert "has no trial 999" in said.err


def test_usage(over: Shell) -> None:
    for words in (("trial", "ls", "--state", "odd"), ("run",), ("best", "-n", "0")):
        said = over(*words)
        assert said.code == ExitCode.USAGE, words
        assert not said.out


def test_a_wrong_choice_is_said_in_our_words(over: Shell) -> None:
    said = over("experiment", "export", "--format", "xml")
    assert (said.code, "'xml' is not one of 'json', 'csv'" in said.err) == (2, True)
    assert "Value error" not in said.err
