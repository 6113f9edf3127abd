"""A backup taken in the midst of a run is an experiment that can be taken up elsewhere."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from dispatcher.core.model import Phase
from dispatcher.errors import UserError
from dispatcher.maintenance.backup import back_up
from dispatcher.store.verify import verify
from tests.integration.experiment.conftest import Lab
from tests.support.checker import check_store
from tests.support.processes import left_of, wait_until


def test_a_copy_made_while_trials_run_is_resumed_beside_the_original(
    lab: Lab, tmp_path: Path
) -> None:
    folder = lab.create(function="slow", maxTrialNumber=12, trialEnvironment=lab.hold(5))
    lab.start(folder)
    wait_until(lambda: lab.snapshot(folder)["ended"] >= 4, "four trials over")
    done = back_up(folder, tmp_path / "elsewhere", weights=True)
    copy = done.folder
    lab.let_go()
    lab.folders.append(copy)
    assert copy == tmp_path / "elsewhere" / folder.name
    assert done.weights >= 4
    assert done.linked
    assert list((copy / "keys").iterdir()) == [], "keys are the original's"
    assert not (copy / "journal.sqlite-wal").exists(), "one file, and all is in it"
    assert verify(copy / "journal.sqlite").ok
    for store, there in ((folder, 1), (copy, 0)):
        with sqlite3.connect(store / "journal.sqlite") as reader:
            query = "SELECT count(*) FROM meta WHERE key = 'sockets'"
            assert reader.execute(query).fetchone() == (there,), "each has sockets of its own"
        reader.close()

    phase, notices = lab.run(copy)
    assert phase is Phase.COMPLETED, notices
    assert left_of(folder, 120) == [], "the original is over, too"
    for one in (copy, folder):
        assert check_store(one / "journal.sqlite", over=True) == []
    with sqlite3.connect(copy / "journal.sqlite") as reader:
        query = "SELECT count(*) FROM trials WHERE outcome = 'succeeded' AND verdict = ''"
        assert reader.execute(query).fetchone() == (12,), "each inherited what it was to inherit"
    reader.close()


def test_what_is_in_the_copy_is_its_own(lab: Lab, tmp_path: Path) -> None:
    service = {"platform": "local", "reuseMode": "inProcess", "codeSnapshot": True}
    folder = lab.create(maxTrialNumber=3, trainingService=service)
    lab.run(folder)
    first = tmp_path / "first"
    copy = back_up(folder, first).folder
    text = (copy / "experiment.json").read_text()
    assert str(folder.parent) not in text.replace(str(first), "")
    assert json.loads(text)["experiment"]["trialCodeDirectory"] == str(copy / "code")
    assert (copy / "code" / "evolving.py").is_file()
    assert list((copy / "weights").iterdir()) == [], "not asked for"
    again = back_up(copy, tmp_path / "second").folder
    assert str(copy) not in (again / "experiment.json").read_text()
    assert verify(again / "journal.sqlite").ok
    with pytest.raises(UserError, match="there is something already"):
        back_up(folder, first)
    assert os.listdir(first) == [folder.name]


def test_a_copy_that_cannot_be_made_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    folder = lab.create(maxTrialNumber=3)
    (folder / "experiment.json").write_text("{")
    with pytest.raises(UserError):
        back_up(folder, tmp_path / "copies")
    assert os.listdir(tmp_path / "copies") == []


def test_weights_that_went_meanwhile_are_known_to_be_gone(lab: Lab, tmp_path: Path) -> None:
    folder = lab.create(maxTrialNumber=6)
    lab.run(folder)
    with sqlite3.connect(folder / "journal.sqlite") as reader:
        query = "SELECT id, save_path FROM trials WHERE weights_digest NOT NULL ORDER BY id"
        trial, path = reader.execute(query).fetchone()
    reader.close()
    gone = folder / "weights" / path
    gone.rename(tmp_path / "gone")
    done = back_up(folder, tmp_path / "copies", weights=True)
    assert done.gone == 1
    with sqlite3.connect(done.folder / "journal.sqlite") as reader:
        removed = reader.execute("SELECT trial, removed_at NOT NULL FROM weights_removed")
        assert removed.fetchall() == [(trial, 1)]
    reader.close()
