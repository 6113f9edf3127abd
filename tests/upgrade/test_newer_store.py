"""A store that a newer bequeath has written: named, and left as it is, by all that open one."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.errors import DispatcherError, StoreError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.web.follower import Follower
from tests.integration.web.conftest import EXPERIMENT, laid_down
from tests.unit.cli.conftest import Shell

NEWER = "9000"


def make_newer(folder: Path) -> None:
    """As an upgrade does that this version does not know."""
    with closing(sqlite3.connect(folder / "journal.sqlite")) as store:
        store.execute("UPDATE schema_version SET version_num = ?", (NEWER,))
        store.commit()


def contents(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.suffix in ("", ".json")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = laid_down(tmp_path / "home", 8)
    make_newer(folder)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("status", EXPERIMENT),
        ("why", EXPERIMENT),
        ("trial", "ls", EXPERIMENT),
        ("trial", "note", "3", "good", "-e", EXPERIMENT),
        ("trial", "tag", "3", "good", "-e", EXPERIMENT),
        ("experiment", "star", EXPERIMENT),
        ("experiment", "export", EXPERIMENT),
        ("experiment", "verify", EXPERIMENT),
        ("experiment", "compact", EXPERIMENT),
        ("experiment", "update", "maxTrialNumber", "50", "-e", EXPERIMENT),
        ("weights", "pin", "3", "-e", EXPERIMENT),
        ("web", "--export", EXPERIMENT, "-o", "run.html"),
        ("plot", "slots", EXPERIMENT, "--json"),
        ("sink", EXPERIMENT, "--folder", "tb"),
        ("resume", EXPERIMENT),
    ],
    ids=" ".join,
)
def test_each_command_names_it_and_changes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Mutation: a note that is written into tables whose meaning nobody here knows."""
    monkeypatch.chdir(tmp_path)
    before = contents(folder)
    said = Shell()(*words)
    assert said.code == 4, said
    assert f"schema {NEWER}" in said.err
    assert "upgrade bequeath" in said.err
    assert contents(folder) == before
    assert not (tmp_path / "run.html").exists()


def test_the_list_says_that_it_cannot_be_read_and_not_that_it_is_damaged(folder: Path) -> None:
    listed = Shell()("experiment", "list")
    assert listed.code == 0
    assert "unreadable: the store has schema" in " ".join(listed.out.split())
    assert "damaged" not in listed.out


def test_who_follows_it_while_it_is_upgraded_stops(tmp_path: Path) -> None:
    """Mutation: the newest schema that one knows is not looked at again."""
    folder = laid_down(tmp_path / "home", 8)
    follower = Follower(folder)
    assert follower.step() is not None
    make_newer(folder)
    with pytest.raises(StoreError, match=f"schema {NEWER}") as stopped:
        follower.step()
    assert stopped.value.hint == "upgrade bequeath"
    follower.close()


def test_a_record_with_keys_that_nobody_here_knows_says_whose_it_may_be(tmp_path: Path) -> None:
    folder = laid_down(tmp_path / "home", 2)
    record = json.loads((folder / "experiment.json").read_text())
    record["experiment"]["laterKey"] = 1
    (folder / "experiment.json").write_text(json.dumps(record))
    with pytest.raises(DispatcherError, match="laterKey") as refused:
        ExperimentHandle(folder).config()
    assert refused.value.hint == "a newer bequeath may have written it: upgrade this one"
