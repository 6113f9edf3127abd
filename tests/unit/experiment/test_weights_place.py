"""``weightsRoot`` as a URL: what it may be, and what becomes of secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.experiment.weights_place import RootUrl


def built(good: dict[str, Any], **keys: Any) -> ExperimentConfig:
    return build_experiment({**good, **keys})


def refusal(good: dict[str, Any], **keys: Any) -> str:
    with pytest.raises(ExperimentFileErrors) as refused:
        built(good, **keys)
    return str(refused.value)


def test_a_url_stays_what_it_is_through_the_record(good: dict[str, Any]) -> None:
    config = built(good, weightsRoot="s3://bucket/w", weightsRootOptions={"secret": "env:S"})
    assert config.weights_root == RootUrl("s3://bucket/w")
    assert config.weights_folder is None
    again = from_json(to_json(config))
    assert again == config
    assert isinstance(again.weights_root, RootUrl)


def test_file_urls_are_folders(good: dict[str, Any]) -> None:
    assert built(good, weightsRoot="file:///srv/a%20b").weights_root == Path("/srv/a b")
    assert "three slashes" in refusal(good, weightsRoot="file://host/srv")


@pytest.mark.parametrize(
    "url,said",
    [
        ("s33://bucket/w", "did you mean s3://?"),
        ("sfpt://host/w", "did you mean sftp://?"),
        ("sftp://me:hunter2@host/w", "carries a password"),
        ("s3://", "names no host or bucket"),
        ("s3://bucket/../other", "may not hold '..'"),
        ("s3://bucket/w?versionId=1", "and nothing else"),
        ("https://host/w", "unknown protocol"),
    ],
)
def test_urls_that_cannot_be(good: dict[str, Any], url: str, said: str) -> None:
    text = refusal(good, weightsRoot=url)
    assert said in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "options",
    [
        {"secret": "hunter2"},
        {"password": "hunter2"},
        {"client_kwargs": {"aws_session_token": "hunter2"}},
        {"passphrase": "hunter2"},
    ],
)
def test_a_secret_that_is_written_out_is_refused(
    good: dict[str, Any], options: dict[str, Any]
) -> None:
    text = refusal(good, weightsRoot="s3://bucket/w", weightsRootOptions=options)
    assert "write env:NAME or file:PATH" in text
    assert "hunter2" not in text


def test_references_to_files_are_absolute_but_for_homes(good: dict[str, Any]) -> None:
    options = {"secret": "file:keys/s3", "token": "file:~/.token", "n": {"secret": "env:X"}}
    config = built(good, weightsRoot="s3://bucket/w", weightsRootOptions=options)
    found = config.weights_root_options
    assert found["secret"] == f"file:{Path.cwd()}/keys/s3"
    assert found["token"] == "file:~/.token"
    assert found["n"] == {"secret": "env:X"}


def test_options_need_a_url(good: dict[str, Any]) -> None:
    assert "that is a URL" in refusal(good, weightsRootOptions={"key": "x"})


def test_memory_is_kept_whole_and_by_one_agent(good: dict[str, Any]) -> None:
    assert built(good, weightsRoot="memory://w").in_memory
    assert "'retention' must be 'all'" in refusal(
        good, weightsRoot="memory://w", retention={"best": 2}
    )
    elsewhere = {
        "platform": "ssh",
        "machineList": [{"host": "h1", "user": "u", "pythonPath": "/usr/bin"}],
    }
    services = [{"platform": "local"}, elsewhere]
    text = refusal(good, weightsRoot="memory://w", trainingService=services)
    assert "memory:// lies in one agent's process" in text
