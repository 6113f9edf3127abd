"""What ``nnictl`` takes: each verb and option does what ours does, or is refused by name."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.cli.lazy_group import CommandEntry, Table, load
from dispatcher.experiment import build_experiment
from dispatcher.experiments.creating import create
from dispatcher.nni.commands.refused import REFUSED
from dispatcher.nni.commands.verbs import NNI
from tests.unit.cli.conftest import Shell


def _commands(
    path: tuple[str, ...], table: Table
) -> Iterator[tuple[tuple[str, ...], CommandEntry]]:
    for name, entry in table.items():
        below = getattr(load(name, entry), "table", None)
        if below is not None:
            yield from _commands((*path, name), below)
        else:
            yield (*path, name), entry


ALL = list(_commands((), NNI))


@pytest.mark.parametrize("path,entry", ALL, ids=[" ".join(path) for path, _ in ALL])
def test_each_verb_explains_itself(
    path: tuple[str, ...], entry: CommandEntry, bequeath: Shell
) -> None:
    said = bequeath("nni", *path, "--help")
    assert said.code == 0
    assert said.out.startswith(f"Usage: bequeath nni {' '.join(path)} ")
    for parameter in load(path[-1], entry).params:
        assert getattr(parameter, "help", None), f"{path}: {parameter.name} says nothing"


#: What people type, by verb: all options of all releases.
TYPED = {
    "create": "--config -c --port -p --debug -d --foreground -f --url_prefix -u",
    "resume": "--port -p --debug -d --foreground -f --experiment_dir -e",
    "view": "--port -p --experiment_dir -e",
    "stop": "--port -p --all -a",
    "update searchspace": "--filename -f",
    "update concurrency": "--value -v",
    "update duration": "--value -v",
    "update trialnum": "--value -v",
    "trial ls": "--head --tail",
    "trial kill": "--trial_id -T",
    "experiment show": "",
    "experiment status": "",
    "experiment list": "--all",
    "experiment delete": "--all",
    "experiment export": "--filename -f --type -t --intermediate -i",
    "experiment import": "--filename -f",
    "experiment save": "--path -p --saveCodeDir -s",
    "config show": "",
    "log stdout": "--tail -T --head -H --path",
    "log stderr": "--tail -T --head -H --path",
    "log trial": "--trial_id -T",
    "top": "--time -t",
    "algo list": "",
    "algo show": "",
    "package list": "",
    "package show": "",
}


#: Verbs that nnictl has not: its manager listens whether or not one asks.
OURS = {"serve"}


@pytest.mark.parametrize("word", ["--version", "-v"])
def test_the_version_is_told_under_its_own_name(word: str, bequeath: Shell) -> None:
    assert bequeath("nni", word) == bequeath("--version")
    assert bequeath("nni", word).out.startswith("bequeath ")


def test_no_verb_and_no_option_is_forgotten() -> None:
    """Mutation: an option loses its short form."""
    commands = {" ".join(path): load(path[-1], entry) for path, entry in ALL}
    assert commands.keys() == TYPED.keys() | REFUSED.keys() | OURS
    for words, options in TYPED.items():
        taken = {option for one in commands[words].params for option in one.opts}
        assert set(options.split()) <= taken, words


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_not_here_says_what_to_do_instead(words: str, bequeath: Shell) -> None:
    """Mutation: refused commands read their options, and complain of those."""
    said = bequeath("nni", *words.split(), "-x", "--filename", "a.json", "more")
    assert said.code == 3
    what, instead = REFUSED[words]
    assert said.err.split() == f"nni {words}: {what} {instead}".split()


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    """An experiment that has not begun."""
    (tmp_path / "code").mkdir()
    values = {
        "experimentName": "hello",
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(tmp_path / "code"),
        "trialConcurrency": 1,
        "experimentWorkingDirectory": str(home),
    }
    return create(build_experiment(values))


@pytest.mark.parametrize(
    "verb,value,key,new",
    [
        ("concurrency", "3", "trialConcurrency", 3),
        ("duration", "2h", "maxExperimentDuration", 7200.0),
        ("trialnum", "9", "maxTrialNumber", 9),
    ],
)
def test_updates_change_our_keys(
    verb: str, value: str, key: str, new: Any, folder: Path, bequeath: Shell
) -> None:
    assert bequeath("nni", "update", verb, folder.name, "-v", value).code == 0
    assert bequeath("nni", "experiment", "show").json()["settings"][key] == new
    assert bequeath("nni", "config", "show", folder.name).json()["settings"][key] == new


def test_a_search_space_comes_from_its_file(folder: Path, bequeath: Shell, tmp_path: Path) -> None:
    space = tmp_path / "space.json"
    space.write_text(json.dumps({"y": {"_type": "choice", "_value": [1, 2]}}))
    assert bequeath("nni", "update", "searchspace", "-f", space).code == 0
    settings = bequeath("nni", "experiment", "show").json()["settings"]
    assert list(settings["searchSpace"]) == ["y"]


@pytest.mark.parametrize(
    "words,text",
    [
        ("create -c none.yml -u /a", "without a port"),
        ("create -c none.yml", "none.yml"),
        ("resume hello -d", "fixed once"),
        ("resume hello -e /nowhere", "holds no experiment 'hello'"),
        ("view hello -e /nowhere", "holds no experiment 'hello'"),
        ("stop -p 1", "served at port 1"),
        ("stop hello -p 1", "names one experiment"),
        ("stop all", "--all"),
        ("stop hello --all", "keep one of the two"),
        ("stop hell*", "no experiment that begins with 'hell' is running"),
        ("trial kill -T Xa3fe", "no trial's id"),
        ("experiment save hello -s", "code"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    words: str, text: str, folder: Path, bequeath: Shell
) -> None:
    said = bequeath("nni", *words.split())
    assert said.code in (3, 4)
    assert text in said.err


def test_debug_is_the_files_debug(bequeath: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: ``--debug`` is taken and dropped."""
    from dispatcher.cli import run as ours

    begun: list[Any] = []
    monkeypatch.setattr(ours, "begin_in_background", lambda one, **_: begun.append(one))
    hello = Path(__file__).parents[4] / "examples" / "nni_classic" / "config_v2.yml"
    bequeath("nni", "create", "--config", hello)
    bequeath("nni", "create", "-c", hello, "-d")
    assert [(one.debug, one.log_level) for one in begun] == [(False, "info"), (True, "debug")]


def test_an_experiment_lies_where_its_folder_is_said_to_be(
    folder: Path, bequeath: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either the folder itself or the one above it."""
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "elsewhere"))
    for place in (folder, folder.parent):
        assert f"id      {folder.name}" in bequeath("nni", "view", folder.name, "-e", place).out


@pytest.fixture
def jobs(over: Shell) -> list[dict[str, Any]]:
    """All trials in NNI's layout."""
    listed: list[dict[str, Any]] = over("nni", "trial", "ls").json()
    return listed


def test_trials_have_nnis_layout(jobs: list[dict[str, Any]], over: Shell) -> None:
    ours = over("trial", "ls", "--json").json()["trials"]
    proposed = [one for one in ours if one["proposed_at"] is not None]
    assert len(proposed) < len(ours), "NNI knows no trial that its tuner still thinks about"
    assert [one["trialJobId"] for one in jobs] == [str(one["id"]) for one in proposed]
    assert {one["status"] for one in jobs} == {"SUCCEEDED", "FAILED"}
    best = jobs[0]
    assert json.loads(best["hyperParameters"][0])["parameters"] == ours[0]["parameters"]
    value = json.loads(json.loads(best["finalMetricData"][0]["data"]))
    assert value == ours[0]["result"]
    assert best["startTime"] < best["endTime"]
    assert Path(best["logPath"]).parts[-2:] == ("trials", "0")


def test_head_and_tail_are_the_highest_and_the_lowest(
    jobs: list[dict[str, Any]], over: Shell
) -> None:
    """Mutation: ``--tail`` takes the worst of the head."""

    def value(one: dict[str, Any]) -> float:
        return float(json.loads(json.loads(one["finalMetricData"][0]["data"])))

    values = sorted(value(one) for one in jobs if one["status"] == "SUCCEEDED")
    highest, lowest = (over("nni", "trial", "ls", way, 3).json() for way in ("--head", "--tail"))
    assert [value(one) for one in highest] == values[:-4:-1]
    assert [value(one) for one in lowest] == values[:3]
    assert over("nni", "trial", "ls", "--head", 1, "--tail", 1).code == 2


def test_results_are_exported_as_nni_does(over: Shell, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert over("nni", "experiment", "export", "-f", file, "-t", "json", "-i").code == 0
    rows = json.loads(file.read_text())
    ours = over("trial", "ls", "--state", "ended", "--json").json()["trials"]
    good = [one for one in ours if one["outcome"] == "succeeded"]
    assert [row["trialJobId"] for row in rows] == [str(one["id"]) for one in good]
    assert [json.loads(row["value"]) for row in rows] == [one["result"] for one in good]
    assert [row["parameter"] for row in rows] == [one["parameters"] for one in good]
    assert all(isinstance(row["intermediate"], list) for row in rows)
    assert over("nni", "experiment", "export", "--filename", file, "--type", "csv").code == 0
    table = list(csv.DictReader(file.read_text().splitlines()))
    assert [row["trialJobId"] for row in table] == [str(one["id"]) for one in good]
    assert float(table[0]["reward"]) == good[0]["result"]


def test_one_word_on_how_it_stands(folder: Path, bequeath: Shell) -> None:
    said = bequeath("nni", "experiment", "status", folder.name).json()
    assert said == {"errors": [], "status": "INITIALIZED"}


def test_only_what_runs_is_listed_unless_all_are_asked_for(folder: Path, bequeath: Shell) -> None:
    said = bequeath("nni", "experiment", "list")
    assert said.out == ""
    assert "--all lists" in said.err
    assert folder.name in bequeath("nni", "experiment", "list", "--all").out


def test_deleting_needs_a_name_or_all(folder: Path, bequeath: Shell) -> None:
    assert bequeath("nni", "experiment", "delete").code == 2
    assert bequeath("nni", "experiment", "delete", folder.name).code == 2, "nobody agreed"
    assert folder.exists()
    assert bequeath("nni", "experiment", "delete", "--all", "-y").code == 0
    assert not folder.exists()


def test_logs_by_lines_and_by_name(folder: Path, bequeath: Shell) -> None:
    (folder / "logs" / "head.log").write_text("one\ntwo\nthree\n")
    assert bequeath("nni", "log", "stdout", "--tail", 2).out == "two\nthree\n"
    assert bequeath("nni", "log", "stdout", "-H", 1).out == "one\n"
    assert bequeath("nni", "log", "stdout", "--path").out == f"{folder}/logs/head.log\n"
    assert "is empty" in bequeath("nni", "log", "stderr", folder.name).err


def test_trials_logs_are_named(over: Shell, evolved: Path) -> None:
    lines = over("nni", "log", "trial").out.splitlines()
    assert lines[0] == f"Trial:0 path:{evolved}/trials/0"
    assert "no trial's id" in over("nni", "log", "trial", "-T", "abc").err
