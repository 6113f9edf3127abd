"""Trials by hand: who asks looks where paths lead, the engine's thread asks no disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core.resources import Needs
from dispatcher.errors import UserError
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import from_json
from dispatcher.experiments.creating import create
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.user_requests import UserRequests
from dispatcher.wiring.submitted import looked_up


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExperimentFolder:
    """An experiment whose read root is a link."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zoo").mkdir()
    (tmp_path / "pretrained").symlink_to("zoo")
    config = build_experiment(
        {
            "searchSpace": {"lr": {"_type": "choice", "_value": [1]}},
            "tuner": {"name": "Random"},
            "trialCommand": "true",
            "trialConcurrency": 1,
            "weightsRoot": "weights",
            "weightsReadRoots": ["pretrained"],
            "experimentWorkingDirectory": "experiments",
        }
    )
    return ExperimentFolder(create(config))


@pytest.fixture
def requests(folder: ExperimentFolder) -> UserRequests:
    return UserRequests(from_json(folder.read_config()), folder)


def away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of all shares is away: whoever asks waits, and would for ever."""
    for name in ("stat", "lstat", "readlink", "open", "listdir", "scandir", "mkdir"):
        monkeypatch.setattr(os, name, lambda *_, **__: pytest.fail("asked the disk"))


def test_the_engine_asks_no_disk(
    folder: ExperimentFolder,
    requests: UserRequests,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = looked_up(
        folder.path,
        {"lr": 1, "save_path": "a/../b", "restore_path": str(tmp_path / "pretrained/net")},
    )
    with monkeypatch.context() as patch:
        away(patch)
        event = requests.admit(asked)
    assert (event.save_path, event.restore_path) == ("b", str(tmp_path / "pretrained/net"))


def test_one_place_has_one_name(
    folder: ExperimentFolder, requests: UserRequests, tmp_path: Path
) -> None:
    (tmp_path / "weights/5").mkdir(parents=True)
    (tmp_path / "weights/best").symlink_to("5")
    for spelling in ("5", "best", str(tmp_path / "weights/best")):
        asked = looked_up(folder.path, {"save_path": "6", "restore_path": spelling})
        assert requests.admit(asked).restore_path == "5"
    real = looked_up(folder.path, {"restore_path": str(tmp_path / "zoo/net")})
    assert requests.admit(real).restore_path == str(tmp_path / "pretrained/net")


def test_a_link_that_leads_out_is_refused_by_who_asks(
    folder: ExperimentFolder, tmp_path: Path
) -> None:
    (tmp_path / "weights").mkdir(exist_ok=True)
    (tmp_path / "weights/out").symlink_to(tmp_path)
    with pytest.raises(UserError, match="a symbolic link on this path leads out"):
        ExperimentHandle(folder.path).submit({"save_path": "out/x"})


@pytest.mark.parametrize(
    "path", ["../x", "/etc", "", ".checkpoints/1", 5, ["a"], {"a": 1}, "\ud800"]
)
def test_nonsense_is_refused_by_both(
    folder: ExperimentFolder, requests: UserRequests, path: Any
) -> None:
    """A list as a path once ended the engine."""
    for key in ("save_path", "restore_path"):
        with pytest.raises(UserError, match="cannot submit these parameters"):
            looked_up(folder.path, {key: path})
        with pytest.raises(UserError, match="cannot submit these parameters"):
            requests.admit({key: path})


def test_needs_by_hand_are_read_as_a_tuners_are(requests: UserRequests) -> None:
    admitted = requests.admit({"x": 1, "_needs": {"gpus": 2}})
    assert (admitted.parameters, admitted.needs) == ('{"x": 1}', Needs(gpus=2.0))
    assert requests.admit({"x": 1}).needs is None
    with pytest.raises(UserError, match="'_needs' gpus must be a number, not 'two'"):
        requests.admit({"_needs": {"gpus": "two"}})
