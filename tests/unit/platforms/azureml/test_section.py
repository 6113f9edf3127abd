"""What a file gets to hear before anything is asked: names that Azure does not take, secrets that
stand in the file, and folders that no job sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.experiment.snapshot import from_json, to_json
from tests.support.services.azureml import COMPUTE, ENVIRONMENT, GROUP, SUBSCRIPTION, WORKSPACE


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_TOKEN", "t0ken")


def values(folder: Path, keys: dict[str, Any]) -> dict[str, Any]:
    (folder / "shared").mkdir(exist_ok=True)
    service = {
        "platform": "azureml",
        "subscriptionId": SUBSCRIPTION,
        "resourceGroup": GROUP,
        "workspace": WORKSPACE,
        "compute": COMPUTE,
        "image": ENVIRONMENT,
        "token": "env:AZURE_TOKEN",
        "datastores": [{"name": "workspacefilestore", "here": str(folder / "shared")}],
        "sharedFolder": str(folder / "shared"),
        "codeFolder": "/code",
        "headAddress": "127.0.0.1",
        **keys,
    }
    return {
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(folder),
        "trialConcurrency": 1,
        "weightsRoot": str(folder / "shared/weights"),
        "trainingService": {key: value for key, value in service.items() if value is not ...},
    }


def problems(folder: Path, keys: dict[str, Any]) -> dict[str, str]:
    """What is wrong, by the key."""
    try:
        build_experiment(values(folder, keys))
    except ExperimentFileErrors as refused:
        errors = refused.errors
        return {x.where.rpartition(".")[2]: f"{x.message}; {x.hint}" for x in errors}
    return {}


def test_one_that_is_in_order_and_comes_back_from_its_record(tmp_path: Path) -> None:
    """Mutation: a record of the file that the next head cannot read."""
    assert problems(tmp_path, {"wallTime": "2h"}) == {}
    config = build_experiment(values(tmp_path, {"extras": {"identity": {"identityType": "x"}}}))
    again = from_json(to_json(config))
    assert again.services[0] == config.services[0]
    service: Any = again.services[0]
    assert service.seen(tmp_path / "shared/x") == "/mnt/workspacefilestore/x"
    for image in ("r.azurecr.io/a/b:7", "azureml://registries/azureml/environments/a/versions/3"):
        assert problems(tmp_path, {"image": image}) == {}


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "a subscription by its name": ({"subscriptionId": "Lab"}, "subscriptionId", "the id of a"),
    "a group with a dot at its end": ({"resourceGroup": "a."}, "resourceGroup", "resource group"),
    "a workspace of two letters": ({"workspace": "ab"}, "workspace", "3 to 33"),
    "a compute with an underscore": ({"compute": "a_b"}, "compute", "2 to 32"),
    "a compute that is too long": ({"compute": "a" * 33}, "compute", "2 to 32"),
    "an environment without a version": ({"image": "azureml:nas"}, "image", "NAME:VERSION"),
    "the newest environment": ({"image": "azureml:nas@latest"}, "image", "NAME:VERSION"),
    "a datastore's name": ({"datastores": ["a b"]}, "name", "a name of letters"),
    "a folder from the root": (
        {"datastores": [{"name": "a", "folder": "/x"}]}, "folder", "below the store's root",
    ),
    "two at one place": (
        {"datastores": [{"name": "a", "at": "/m"}, {"name": "b", "at": "/m"}]}, "datastores",
        "two storages at /m",
    ),
    "a token in the file": ({"token": "eyJhbGciOi"}, "token", "never the secret itself"),
    "a token that is not set": ({"token": "env:NOT_SET_HERE"}, "token", "not set here"),
    "a secret in the file": ({"clientSecret": "hunter2"}, "clientSecret", "AZURE_CLIENT_SECRET"),
    "an account's key": ({"account_key": "hunter2"}, "account_key", "no secret stands in it"),
    "no shared folder": ({"sharedFolder": ...}, "sharedFolder", "keys of agents lie there"),
    "a wall time without a unit": ({"wallTime": 90}, "wallTime", "must have a unit"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_key_that_does_not_fit(what: str, tmp_path: Path) -> None:
    keys, key, text = BAD[what]
    found = problems(tmp_path, keys)
    assert key in found, found
    assert text in found[key]
    assert "hunter2" not in str(found)
    assert "eyJ" not in str(found)


def test_folders_that_no_job_sees(tmp_path: Path) -> None:
    """Mutation: "file not found" in a job that cost a node."""
    found = problems(tmp_path, {"datastores": ["workspacefilestore"]})
    assert "no folder that holds" in found["mounts"]


def test_nni_s_words_are_read(tmp_path: Path) -> None:
    given = values(tmp_path, {"workspace": ..., "compute": ..., "image": ...})
    given["trainingService"] |= {
        "workspaceName": "nas-2", "computeTarget": "c2", "dockerImage": "i:1",
    }  # fmt: skip
    service: Any = build_experiment(given).services[0]
    assert (service.workspace, service.compute, service.image) == ("nas-2", "c2", "i:1")
