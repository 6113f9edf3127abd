"""Which experiment is meant, said or unsaid."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dispatcher.errors import DispatcherError, ExperimentNotFound, PassingBackendError, UserError
from dispatcher.experiment import build_experiment
from dispatcher.experiments import known_folders
from dispatcher.experiments.find import Purpose, completions, find
from dispatcher.experiments.processes import kill_experiment
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import evolve, make_folder


@pytest.fixture
def three(home: Path) -> list[Path]:
    """Three small experiments: two share a name."""
    folders = []
    for name, id in (("digits", "digits-aaa"), ("digits", "digits-abb"), ("hello", "hello-ccc")):
        folders.append(make_folder(home, name, id))
        evolve(folders[-1], 2)
    return folders


@contextmanager
def led(*folders: Path) -> Iterator[None]:
    """As if heads were there: each holds its lock."""
    with ExitStack() as stack:
        for folder in folders:
            file = stack.enter_context((folder / "head.lock").open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_by_id_beginning_name_and_folder(three: list[Path], home: Path) -> None:
    for word in ("hello-ccc", "hel", "hello", str(three[2])):
        assert find(word, home) == three[2]
    assert find("digits-ab", home).name == "digits-abb"
    with pytest.raises(UserError, match="go by 'digits'"):
        find("digits", home)
    with pytest.raises(ExperimentNotFound, match="hello-ccc"):
        find("helo-ccc", home)


def test_unsaid_the_one_that_runs_is_meant(three: list[Path], home: Path) -> None:
    with led(three[1]):
        for purpose in (Purpose.READ, Purpose.USE, Purpose.CHANGE, Purpose.RUNNING):
            assert find(None, home, purpose) == three[1]
        assert find("digits-abb", home, Purpose.RUNNING) == three[1]
        with pytest.raises(PassingBackendError, match="hello-ccc is not running"):
            find("hello", home, Purpose.RUNNING)


def test_unsaid_and_none_runs(three: list[Path], home: Path) -> None:
    assert find(None, home) in three
    with pytest.raises(UserError, match="3 experiments are kept"):
        find(None, home, Purpose.CHANGE)
    with pytest.raises(PassingBackendError, match="no experiment is running"):
        find(None, home, Purpose.RUNNING)


def test_unsaid_and_several_run(three: list[Path], home: Path) -> None:
    with led(*three[:2]):
        for purpose in (Purpose.READ, Purpose.RUNNING):
            with pytest.raises(UserError, match="2 experiments run") as caught:
                find(None, home, purpose)
            assert "digits-aaa, digits-abb" in caught.value.hint


def test_what_runs_is_not_resumed_unasked(three: list[Path], home: Path) -> None:
    with led(*three[:2]):
        assert find(None, home, Purpose.RESUME) == three[2]


def test_folders_used_before_are_searched(
    three: list[Path], home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(ExperimentNotFound):
        find("hello", None)
    known_folders.remember(home)
    assert find("hello", None) == three[2]
    assert completions("hel") == ["hello-ccc"]


def test_what_nobody_has_named_is_looked_for_at_home(
    three: list[Path], home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bequeath: Shell
) -> None:
    """As `experiment list` shows it: nobody stops by a guess what lies in another home. Mutation:
    a guess takes what was ever used."""
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("BEQUEATH_HOME", str(own))
    known_folders.remember(home)
    with led(three[2]):
        with pytest.raises(ExperimentNotFound, match="no experiments yet") as caught:
            find(None, None)
        assert "experiment list --all" in caught.value.hint
        for purpose in (Purpose.RUNNING, Purpose.RESUME):
            with pytest.raises(DispatcherError, match="no experiment"):
                find(None, None, purpose)
        assert find("hello", None, Purpose.RUNNING) == three[2], "it was named"
        assert "no experiment is running" in bequeath("stop").err
        assert "no experiment is running" in bequeath("nni", "stop", "--all").err
        monkeypatch.delenv("BEQUEATH_HOME")
        assert find(None, None, Purpose.RUNNING) == three[2]


def test_an_error_names_the_home_in_use(
    three: list[Path], home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Mutation: the folder that was used last stands in the error, and is searched first."""
    other = tmp_path / "other"
    evolve(make_folder(other, "beta", "beta-ddd"), 2)
    evolve(make_folder(other, "hello", "hello-eee"), 2)
    monkeypatch.setenv("BEQUEATH_HOME", str(home))
    known_folders.remember(home)
    known_folders.remember(other)
    with pytest.raises(ExperimentNotFound, match="no experiment goes by 'ghost'") as caught:
        find("ghost", None)
    assert caught.value.where == str(home)
    assert caught.value.hint == "there are digits, digits-aaa, digits-abb, hello, hello-ccc"
    with pytest.raises(ExperimentNotFound) as caught:
        find("betta", None)
    assert caught.value.where == str(home)
    assert caught.value.hint == f"did you mean beta, beta-ddd, below {other}?"
    assert find("beta", None) == other / "beta-ddd"
    assert find("hello", None) == three[2], "two homes have the name"
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(ExperimentNotFound, match="no experiments yet") as caught:
        find("ghost", None)
    assert caught.value.where == str(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "words",
    [
        "resume @", "resume --take-over @", "stop @", "kill --yes @", "status @", "top @", "why @",
        "best @", "lineage @", "trial ls @", "trial show 1 -e @",
        "trial kill 1 -e @", "experiment show @", "experiment verify @", "experiment compact @",
        "experiment delete --yes @", "experiment update maxTrialNumber 3 -e @", "weights du @",
        "weights gc --yes @", "weights pin 1 -e @", "nni stop @", "nni resume @",
        "nni experiment delete --yes @", "nni trial ls @",
    ],
)  # fmt: skip
def test_an_empty_name_is_nobodys(words: str, three: list[Path], bequeath: Shell) -> None:
    """A script's variable that holds nothing must not mean the newest one. Mutation: what is
    empty counts as not said."""
    said = bequeath(*("" if word == "@" else word for word in words.split()))
    assert said.code != 0
    assert "an empty name is no experiment's" in said.err
    assert all(folder.is_dir() for folder in three)


def test_a_folder_is_remembered_once_and_the_newest_first(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for folder in (home, other, home, tmp_path / "gone"):
        known_folders.remember(folder)
    known = [folder for folder in known_folders.known_folders() if tmp_path in folder.parents]
    assert known == [home, other]


def test_a_number_that_another_process_has_by_now_is_left_alone(three: list[Path]) -> None:
    """What a dead head wrote of itself may name a process that is somebody else's."""
    (three[0] / "leader.json").write_text(json.dumps({"pid": os.getppid(), "epoch": 1}))
    with led(three[0]):
        assert kill_experiment(three[0]) == []


def test_experiments_live_at_home_unless_their_file_says_otherwise(home: Path) -> None:
    values = {
        "tuner": {"name": "Random"},
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialConcurrency": 1,
    }
    housed = known_folders.with_default_folder(build_experiment(values, base_folder=home))
    assert housed.experiment_working_directory == home
    values["experimentWorkingDirectory"] = "elsewhere"
    housed = known_folders.with_default_folder(build_experiment(values, base_folder=home))
    assert housed.experiment_working_directory == home / "elsewhere"


def test_delete(three: list[Path], bequeath: Shell) -> None:
    with led(three[2]):
        said = bequeath("experiment", "delete", "hello", "--yes")
    assert said.code == 3
    assert "is running" in said.err
    assert bequeath("experiment", "delete", "hello").code == 2  # nobody to ask, and no --yes
    assert three[2].exists()
    assert bequeath("experiment", "delete", "hello", "--yes").code == 0
    assert not three[2].exists()
    assert three[0].exists()
