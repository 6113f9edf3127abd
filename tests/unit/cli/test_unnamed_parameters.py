"""Parameters that are no object, as tuners written for NNI may return: shown as others are."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from dispatcher.store import SqliteJournal
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life


@pytest.fixture
def listed(tmp_path: Path, bequeath: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The command line over an experiment of one trial, whose parameters are a list."""
    folder = make_folder(tmp_path / "base")
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal, trial_retries=0)
    life.begin()
    life.propose(0, parameters='[3, {"k": 5}]')
    life.run(0, "0.9")
    life.deliver(0)
    journal.close()
    monkeypatch.setenv("BEQUEATH_HOME", str(folder.parent))
    return bequeath


@pytest.mark.parametrize("words", ["best", "trial ls", "trial show 0"])
def test_they_are_shown_to_people(listed: Shell, words: str) -> None:
    """Mutation: what is no object counts as nothing."""
    said = listed(*words.split())
    assert said.code == 0, said.err
    assert "[3, (k=5)]" in said.out, said.out  # as the blocks of a list are shown


def test_and_to_programs(listed: Shell, tmp_path: Path) -> None:
    assert listed("best", "--json").json()["trials"][0]["parameters"] == [3, {"k": 5}]
    row = next(csv.DictReader(listed("experiment", "export", "--format", "csv").out.splitlines()))
    assert json.loads(row["parameters.value"]) == [3, {"k": 5}]
    told = json.loads(listed("nni", "trial", "ls").out)[0]["hyperParameters"][0]
    assert json.loads(told)["parameters"] == [3, {"k": 5}]
    out = tmp_path / "out.csv"
    assert listed("nni", "experiment", "export", "-f", out, "-t", "csv").code == 0
    assert next(csv.DictReader(out.read_text().splitlines()))["value"] == "[3, {'k': 5}]"
