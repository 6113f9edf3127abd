"""What a file gets to hear before anything is asked: keys that do not fit, and secrets in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from tests.unit.platforms.openpai.test_section import problems, values

#: The keys of the other service are left out.
BASE: dict[str, Any] = {
    **dict.fromkeys(("user", "token", "cpus", "memory", "address"), ...),
    "platform": "nsml",
    "project": "p-7",
    "gpuServer": 31,
}


@pytest.fixture
def base(tmp_path: Path) -> dict[str, Any]:
    keys = ("accessKey", "secretKey", "apiKey")
    for key in keys:
        (tmp_path / key).write_text("hunter2-hunter2")
    return {**BASE, **{key: f"file:{tmp_path / key}" for key in keys}}


def test_one_that_is_in_order_and_comes_back_from_its_record(
    base: dict[str, Any], tmp_path: Path
) -> None:
    """Mutation: a record of the file that the next head cannot read; a secret is in it."""
    keys = {**base, "blockStorages": [5], "endedStates": ["DONE"], "wallTime": "2h"}
    assert problems(tmp_path, keys) == {}
    config = build_experiment(values(tmp_path, keys))
    record = to_json(config)
    assert "hunter2" not in str(record)
    service: Any = from_json(record).services[0]
    assert service == config.services[0]
    assert service.address == "https://nsml.apigw.ntruss.com/nsml/v1"


def test_words_of_the_api_are_read(base: dict[str, Any], tmp_path: Path) -> None:
    keys = {**base, "project": ..., "gpuServer": ...}
    given = values(tmp_path, keys)
    given["trainingService"] |= {"projectId": "p-8", "gpuSvrCode": 7}
    service: Any = build_experiment(given).services[0]
    assert (service.project, service.gpu_server) == ("p-8", 7)


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "a secret in the file": ({"secretKey": "hunter2"}, "secretKey", "write 'env:NAME'"),
    "a variable that is not set": ({"apiKey": "env:NOT_SET_HERE"}, "apiKey", "not set here"),
    "a project with a path": ({"project": "a/b"}, "project", "the id of a project"),
    "a server by its name": ({"gpuServer": "V100"}, "gpuServer", "whole number"),
    "a kind of image": ({"imageType": "OWN"}, "imageType", "CUSTOM"),
    "a misspelt key": ({"gpuServr": 3}, "gpuServr", "gpuServer"),
    "no place for keys": ({"sharedFolder": ...}, "sharedFolder", "keys of agents lie there"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_key_that_does_not_fit(what: str, base: dict[str, Any], tmp_path: Path) -> None:
    keys, key, text = BAD[what]
    found = problems(tmp_path, {**base, **keys})
    assert key in found, found
    assert text in found[key]
    assert "hunter2" not in str(found)


def test_its_runs_may_have_several_nodes(base: dict[str, Any], tmp_path: Path) -> None:
    assert problems(tmp_path, base, trialNodes=2) == {}
