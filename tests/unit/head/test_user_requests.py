"""Settings that a user changes while an experiment runs: in the record and in the core."""

from __future__ import annotations

import errno
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.errors import UserError
from dispatcher.experiment import build_experiment
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.snapshot import from_json
from dispatcher.experiment.updates import UPDATABLE
from dispatcher.experiments.creating import create
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.user_requests import UserRequests
from dispatcher.wiring.settings import settings_of

NEW: dict[str, Any] = {
    "trialConcurrency": 8,
    "maxTrialNumber": 500,
    "maxExperimentDuration": "3h",
    "searchSpace": {"lr": {"_type": "choice", "_value": [1, 2, 3]}},
    "lookahead": 7,
    "stopWhen": {"target": 0.9, "noProgress": None, "trialTime": None},
}

CHANGED = {"trialConcurrency": 8, "maxTrialNumber": 10, "lookahead": 3}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExperimentFolder:
    monkeypatch.chdir(tmp_path)
    values = {
        "searchSpace": {"lr": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialConcurrency": 2,
        "maxTrialNumber": 10,
        "shareWith": "all",
        "experimentWorkingDirectory": "experiments",
    }
    return ExperimentFolder(create(build_experiment(values)))


@pytest.fixture
def users(folder: ExperimentFolder) -> UserRequests:
    return UserRequests(recorded(folder), folder)


def recorded(folder: ExperimentFolder) -> ExperimentConfig:
    return from_json(folder.read_config(), str(folder.config))


def of(config: ExperimentConfig, keys: Any) -> dict[str, Any]:
    values = config.model_dump(by_alias=True, mode="json")
    return {key: values[key] for key in keys}


def test_each_key_that_may_be_changed_is_tried_here() -> None:
    assert {*NEW} == {*UPDATABLE}


@pytest.mark.parametrize("keys", [*itertools.permutations(NEW, 2), tuple(NEW)], ids=",".join)
def test_a_change_leaves_those_before_it(
    folder: ExperimentFolder, users: UserRequests, keys: tuple[str, ...]
) -> None:
    """Mutation: each begins with the settings that the head began with, and takes back those
    before it, in the core and in the record."""
    begun = recorded(folder)
    for count, key in enumerate(keys, 1):
        before = recorded(folder)
        settings, *others = users.update(key, NEW[key])
        now = recorded(folder)
        assert settings == e.SettingsUpdated(settings_of(now))
        # A tuner is given a search space that is another one, and no other.
        wanted = [e.SearchSpaceUpdated(json.dumps(NEW[key]))] if key == "searchSpace" else []
        assert others == wanted
        changed = keys[:count]
        assert not [k for k in changed if of(now, [k]) == of(begun, [k])]
        assert of(now, set(NEW) - {key}) == of(before, set(NEW) - {key})
        shown = json.loads(folder.shared_config.read_text())["experiment"]
        assert {k: shown[k] for k in NEW} == of(now, NEW)


def test_one_that_is_refused_changes_nothing(folder: ExperimentFolder, users: UserRequests) -> None:
    """Neither now nor with the next one."""
    users.update("trialConcurrency", 8)
    before = folder.read_config()
    for key, value in (("maxTrialNumber", -1), ("tuner", {"name": "GridSearch"}), ("nonsense", 1)):
        with pytest.raises(UserError):
            users.update(key, value)
        assert folder.read_config() == before
    users.update("lookahead", 3)
    assert of(recorded(folder), CHANGED) == {**CHANGED, "maxTrialNumber": 10}


def test_one_that_cannot_be_written_changes_nothing(
    folder: ExperimentFolder, users: UserRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: it ends the head, with all that runs; others see what has not been changed; the
    next change makes this one as well."""
    users.update("trialConcurrency", 8)
    before, shared = folder.read_config(), folder.shared_config.read_text()
    for fails in (1, 2):  # the write for others, that of the record
        left = [fails]

        def sync(descriptor: int, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as disk:
            disk.setattr(os, "fsync", sync)
            with pytest.raises(UserError, match=r"written down.*No space left on device") as raised:
                users.update("maxTrialNumber", 77)
        assert raised.value.where == str(folder.config)
        assert (folder.read_config(), folder.shared_config.read_text()) == (before, shared)
    (settings,) = users.update("lookahead", 3)
    assert settings == e.SettingsUpdated(settings_of(recorded(folder)))
    assert of(recorded(folder), CHANGED) == {**CHANGED, "maxTrialNumber": 10}
