"""Stores and files that were made to hurt whoever reads them: refused or told, never obeyed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.errors import ExperimentFileError, StoreError
from dispatcher.experiment.snapshot import from_json
from dispatcher.folders.status import is_led, leader_of, status_of
from dispatcher.queries import (
    ExperimentReader,
    ExperimentStatus,
    experiment_summary,
    experiments,
    lineage,
    list_trials,
)
from dispatcher.queries.records import json_value
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import evolve, make_folder

DEEP = "[" * 200_000

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@pytest.fixture
def folder(home: Path) -> Path:
    made = make_folder(home)
    evolve(made, 3)
    return made


def changed(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "journal.sqlite")) as store, store:
        for statement in statements:
            store.execute(statement)


@pytest.mark.parametrize("name", ["experiment.json", "leader.json"])
def test_a_file_that_nests_without_end(folder: Path, bequeath: Shell, name: str) -> None:
    """Mutation: errors of depth that are not errors of the file: the whole list ended with them."""
    (folder / name).write_text(DEEP)
    assert [one.id for one in experiments(folder.parent)] == [folder.name]
    assert bequeath("experiment", "list").code == 0
    assert bequeath("status").code == 0
    if name == "experiment.json":
        assert bequeath("experiment", "show").code == 3
        with pytest.raises(ExperimentFileError):
            from_json(DEEP)


def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(folder: Path, bequeath: Shell) -> None:
    """Mutation: a plain ``open``: it would wait for a writer, and this test for ever."""
    for name in ("experiment.json", "leader.json", "head.lock"):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
    assert not is_led(folder)
    assert leader_of(folder) == {}
    assert status_of(folder, None, None) is ExperimentStatus.INTERRUPTED
    assert bequeath("status").code == 0
    assert bequeath("experiment", "show").code == 4


def test_parameters_that_nest_without_end(folder: Path, bequeath: Shell) -> None:
    for text in (DEEP, "[" * 900 + "]" * 900):
        assert json_value(text) == text
        changed(folder, f"UPDATE trials SET parameters = '{text}'")
        with ExperimentReader.open(folder) as reader:
            assert list_trials(reader)[0].parameters == text
            lineage(reader)
        for words in (("trial", "ls"), ("trial", "ls", "--json"), ("lineage",), ("best", "--json")):
            assert bequeath(*words).code == 0
    assert json_value('{"a": [[1]]}') == {"a": [[1]]}


@pytest.mark.parametrize("table", ["trials", "journal", "meta", "schema_version"])
def test_a_view_in_the_place_of_a_table(folder: Path, bequeath: Shell, table: str) -> None:
    """Mutation: tables that are believed to be tables: status would never end."""
    changed(folder, f"DROP TABLE {table}", f"CREATE VIEW {table} AS {ENDLESS} SELECT * FROM n")
    with pytest.raises(StoreError, match=f"'{table}' is a view"):
        ExperimentReader.open(folder)
    assert bequeath("status", folder).code == 4


def test_a_virtual_table_in_the_place_of_a_table(folder: Path) -> None:
    changed(folder, "DROP TABLE trials", "CREATE VIRTUAL TABLE trials USING fts5(id)")
    with pytest.raises(StoreError, match="'trials'"):
        ExperimentReader.open(folder)


def test_a_query_without_end_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dispatcher.queries.reader.QUERY_S", 0.01)
    with ExperimentReader.open(folder) as reader:
        with pytest.raises(StoreError, match="did not answer"):
            reader.rows(f"{ENDLESS} SELECT i FROM n")
        with pytest.raises(StoreError, match="did not answer"):
            reader.row(f"{ENDLESS} SELECT max(i) FROM n")
        monkeypatch.setattr("dispatcher.queries.reader.QUERY_S", 120.0)
        assert experiment_summary(reader).trials == 5  # and the reader goes on


def test_nothing_of_the_schema_is_called_for_its_readers(folder: Path) -> None:
    with ExperimentReader.open(folder) as reader:
        for pragma, value in (("query_only", 1), ("trusted_schema", 0)):
            assert reader.rows(f"PRAGMA {pragma}")[0][0] == value
