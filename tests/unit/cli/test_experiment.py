"""Changing and checking what is kept, without a head."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from dispatcher.cli.json_shapes import SHAPES
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.experiments import known_folders
from dispatcher.experiments.creating import create
from dispatcher.store import SqliteJournal
from dispatcher.store.leadership import Leadership
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import evolve, make_folder


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    """An experiment as ``create`` makes it."""
    values = {
        "experimentName": "hello",
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(tmp_path / "code"),
        "trialConcurrency": 1,
        "experimentWorkingDirectory": str(home),
    }
    (tmp_path / "code").mkdir()
    return create(build_experiment(values))


def _settings(bequeath: Shell) -> dict[str, object]:
    settings: dict[str, object] = bequeath("experiment", "show").json()["settings"]
    return settings


def test_an_update_waits_for_the_next_head(folder: Path, bequeath: Shell, tmp_path: Path) -> None:
    assert "next resume" in bequeath("experiment", "update", "maxTrialNumber", 7).out
    assert _settings(bequeath)["maxTrialNumber"] == 7
    space = tmp_path / "space.json"
    space.write_text(json.dumps({"y": {"_type": "choice", "_value": [1, 2]}}))
    assert bequeath("experiment", "update", "searchSpace", f"@{space}").code == 0
    assert list(_settings(bequeath)["searchSpace"]) == ["y"]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "key,value,word",
    [
        ("maxTrialNumer", "7", "did you mean 'maxTrialNumber'"),
        ("maxTrialNumber", "many", "whole number"),
        ("trialCommand", "false", "is fixed"),
        ("searchSpace", "@/no/such/file", "does not exist"),
    ],
)
def test_a_bad_update_changes_nothing(
    key: str, value: str, word: str, folder: Path, bequeath: Shell
) -> None:
    before = (folder / "experiment.json").read_text()
    said = bequeath("experiment", "update", key, value)
    assert said.code == 3
    assert word in said.err
    assert (folder / "experiment.json").read_text() == before


def test_a_created_experiment_says_how_to_begin(folder: Path, bequeath: Shell) -> None:
    assert bequeath("why").out.endswith(f"go on with: bequeath resume {folder.name}\n")
    assert bequeath("why", "--json").json()["cause"] == "NO_HEAD"


def test_verify_finds_what_somebody_changed_and_rebuilds_it(home: Path, bequeath: Shell) -> None:
    folder = make_folder(home)
    evolve(folder, 6)
    assert bequeath("experiment", "verify").code == 0
    store = sqlite3.connect(folder / "journal.sqlite")
    with store:
        store.execute("UPDATE trials SET number = 99 WHERE id = 2")
    store.close()
    said = bequeath("experiment", "verify")
    assert said.code == 1
    assert "number is 99" in said.out
    assert bequeath("experiment", "verify", "--rebuild").code == 0


def test_compacting_shortens_the_journal_and_loses_nothing(home: Path, bequeath: Shell) -> None:
    folder = make_folder(home)
    evolve(folder, 60)
    before = bequeath("trial", "ls", "--json").json()
    document = bequeath("experiment", "compact", "--json").json()
    assert list(document) == _keys_of("experiment compact")
    assert document["compacted"]
    assert document["bytes"] < document["bytes_before"]
    assert bequeath("trial", "ls", "--json").json() == before
    assert bequeath("experiment", "verify").code == 0
    assert "nothing to fold" in bequeath("experiment", "compact").out


def record(folder: Path) -> None:
    """Write the record of a small search down, as whoever creates an experiment does."""
    values = {
        "tuner": {"name": "random"},
        "trialCommand": "true",
        "trialConcurrency": 2,
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
    }
    (folder / "experiment.json").write_text(to_json(build_experiment(values, base_folder=folder)))


def test_a_backup_is_an_experiment_of_its_own(home: Path, bequeath: Shell, tmp_path: Path) -> None:
    folder = make_folder(home)
    evolve(folder, 6)
    record(folder)
    other = tmp_path / "other"
    document = bequeath("experiment", "backup", folder.name, other, "--json").json()
    assert list(document) == _keys_of("experiment backup")
    copy = Path(document["folder"])
    assert copy == other / folder.name
    assert bequeath("experiment", "verify", copy).code == 0
    again = bequeath("experiment", "backup", folder.name, other)
    assert again.code == 3
    assert "something already" in again.err


def _keys_of(command: str) -> list[str]:
    return SHAPES[command].partition("{")[2].partition("}")[0].split(", ")


def test_a_damaged_store_is_listed_and_can_be_deleted(home: Path, bequeath: Shell) -> None:
    folder = make_folder(home)
    (folder / "journal.sqlite").write_bytes(b"not a database" * 100)
    assert "damaged" in bequeath("experiment", "list").out
    assert bequeath("status", folder.name).code == 4
    assert bequeath("experiment", "delete", folder.name, "--yes").code == 0


def test_parameters_that_are_no_json(bequeath: Shell, folder: Path) -> None:
    for words in ("{x: 1}", "[1]", "@/no/such/file"):
        said = bequeath("trial", "submit", words)
        assert said.code == 3, words


@pytest.mark.parametrize(
    "words",
    [
        ("experiment", "verify"),
        ("experiment", "compact"),
        ("experiment", "update", "maxTrialNumber", "7"),
        ("weights", "gc", "-y"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_what_looks_after_an_experiment_leaves_its_status(
    words: tuple[str, ...], folder: Path, bequeath: Shell
) -> None:
    """Mutation: such a command takes a number of its own, and the last head's word is stale."""

    def status() -> str:
        return str(bequeath("status", folder.name, "--json").json()["experiment"]["status"])

    def look_after() -> None:
        assert bequeath(*words).code == 0

    look_after()
    assert status() == "created"
    with Leadership.acquire(folder) as lead:
        journal = SqliteJournal.open(folder / "journal.sqlite")
        journal.record_end(lead.epoch, "completed", "max trials")
        journal.close()
    look_after()
    assert status() == "completed"
    Leadership.acquire(folder).release()  # a head that was killed
    look_after()
    assert status() == "interrupted"


def test_a_limit_below_what_was_proposed_says_so(home: Path, bequeath: Shell) -> None:
    folder = make_folder(home)
    evolve(folder, 6)
    record(folder)
    for key in ("maxTrialNumber", "max_trial_number"):
        said = bequeath("experiment", "update", key, 3)
        assert said.code == 0, said
        assert "6 trials were proposed already: no more will be" in said.err
    assert bequeath("experiment", "update", "maxTrialNumber", 60).err == ""


def test_the_list_is_of_this_home_only(
    home: Path, bequeath: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = make_folder(home), make_folder(tmp_path / "elsewhere", id="other-ab23cd")
    for folder in (mine, other):
        evolve(folder, 2)
    known_folders.remember(other.parent)

    def listed(*words: str) -> set[str]:
        found = bequeath("experiment", "list", "--json", *words).json()["experiments"]
        return {one["id"] for one in found}

    assert listed() == {mine.name}
    assert listed("--all") == {mine.name, other.name}
    assert listed("--folder", str(other.parent)) == {other.name}
    monkeypatch.delenv("BEQUEATH_HOME")
    assert other.name in listed()


@pytest.mark.parametrize(
    "words", ["trial note N hi", "trial tag N good", "trial star N", "trial tensors N", "infer N"]
)
def test_a_number_that_no_store_can_hold_is_refused(
    folder: Path, bequeath: Shell, words: str
) -> None:
    said = bequeath(*(str(1 << 63) if word == "N" else word for word in words.split()))
    assert said.code == 3, said.err
    assert "larger than any that a store can hold" in said.err


@pytest.mark.parametrize("time", ["nan", "inf", "1e14", "0001-01-01"])
def test_a_moment_of_no_search_is_refused(folder: Path, bequeath: Shell, time: str) -> None:
    said = bequeath("experiment", "at", time)
    assert said.code == 2, said.err
    assert "no time of a search" in said.err
