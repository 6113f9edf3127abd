"""A study whose program was killed while it was made, and what lies in its folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bequeath as bq
import dispatcher.study  # noqa: F401 - loads what the programs need
from dispatcher.errors import DispatcherError, UserError
from trial_runtime import failpoints

_PROGRAM = """
import sys
import bequeath as bq
bq.Study({"x": bq.uniform(0, 1)}, folder=sys.argv[1], tuner="Random")
"""
STEPS = [each for each in failpoints.NAMES if each.startswith(("create.", "config."))]


def killed_at(step: str, folder: Path) -> None:
    """Make a study in a program that kills itself at this step."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder)],
        env={**os.environ, failpoints.VARIABLE: f"{step}=kill"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("step", STEPS)
def test_a_study_killed_while_it_was_made_is_made_anew(tmp_path: Path, step: str) -> None:
    """Mutations: what lies there is refused; a half journal is opened and refused."""
    folder = tmp_path / "runs" / "first"
    killed_at(step, folder)
    space = {"x": bq.uniform(0, 1)}
    with bq.Study(space, folder=folder, tuner="Random") as study:
        study.tell(study.ask(), 1)
    with bq.Study(space, folder=folder) as study:
        assert [each.value for each in study.trials()] == [1]
        assert not list(folder.glob(".experiment*"))


@pytest.mark.parametrize("step", STEPS[:-1])
@pytest.mark.parametrize("mine", ["mine.txt", "logs/mine.txt", "weights/mine.txt"])
def test_what_a_user_has_put_beside_stays(tmp_path: Path, step: str, mine: str) -> None:
    """Mutation: what is half made is removed, or made use of, with what lies in it."""
    folder = tmp_path / "first"
    killed_at(step, folder)
    (folder / mine).parent.mkdir(exist_ok=True)
    (folder / mine).write_text("mine")
    with pytest.raises(UserError, match="is not empty, and no study"):
        bq.Study({"x": bq.uniform(0, 1)}, folder=folder)
    assert (folder / mine).read_text() == "mine"


def test_a_file_of_the_name_of_ours_stays(tmp_path: Path) -> None:
    """Mutation: a file that is called as ours is replaced."""
    (tmp_path / "experiment.json").write_text('{"of": "somebody"}')
    with pytest.raises(DispatcherError):
        bq.Study({"x": bq.uniform(0, 1)}, folder=tmp_path)
    assert (tmp_path / "experiment.json").read_text() == '{"of": "somebody"}'


def test_the_current_folder_may_be_that_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: an empty folder is removed and made anew, below the feet of its program."""
    here = tmp_path / "here"
    here.mkdir(mode=0o755)
    monkeypatch.chdir(here)
    with bq.Study({"x": bq.uniform(0, 1)}, folder=".", tuner="Random") as study:
        study.tell(study.ask(), 1)
    assert Path.cwd().samefile(here)
    assert here.stat().st_mode & 0o777 == 0o700
    with pytest.raises(UserError, match="is not empty, and no study"):
        bq.Study(folder=tmp_path)


def test_a_journal_whose_making_was_cut_off_is_made_anew(tmp_path: Path) -> None:
    """A program may die within SQLite's first transaction. Mutation: it is only read."""
    folder = tmp_path / "first"
    killed_at("create.config.written", folder)
    cut = "import sqlite3, os, sys; raw = sqlite3.connect(sys.argv[1], isolation_level=None)"
    cut += "; raw.execute('PRAGMA cache_size=1'); raw.execute('BEGIN')"
    cut += "; raw.execute('CREATE TABLE t (x)')"
    cut += "; raw.execute('INSERT INTO t VALUES (zeroblob(100000))'); os._exit(0)"
    subprocess.run([sys.executable, "-c", cut, str(folder / "journal.sqlite")], check=True)
    assert (folder / "journal.sqlite-journal").exists()
    with bq.Study({"x": bq.uniform(0, 1)}, folder=folder, tuner="Random") as study:
        study.tell(study.ask(), 1)


def test_a_file_is_no_folder_of_a_study(tmp_path: Path) -> None:
    """Mutation: it is called somebody else's experiment."""
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(UserError, match="cannot be the folder of a study: Not a directory"):
        bq.Study({"x": bq.uniform(0, 1)}, folder=tmp_path / "mine")
