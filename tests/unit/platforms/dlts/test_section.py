"""What a file gets to hear before anything is asked: keys that do not fit, and secrets in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from tests.unit.platforms.openpai.test_section import problems as problems_of
from tests.unit.platforms.openpai.test_section import values

#: The keys of the other service are left out.
BASE: dict[str, Any] = {
    **dict.fromkeys(("user", "token", "cpus", "memory"), ...),
    "platform": "dlts",
    "cluster": "lab",
    "team": "research",
    "email": "alice@lab.org",
}


@pytest.fixture
def base(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "password").write_text("hunter2-hunter2")
    return {**BASE, "password": f"file:{tmp_path / 'password'}"}


def test_one_that_is_in_order_and_comes_back_from_its_record(
    base: dict[str, Any], tmp_path: Path
) -> None:
    """Mutation: a record of the file that the next head cannot read; the password is in it."""
    keys = {**base, "gpus": 2, "wallTime": "2h", "extras": {"workPath": "nas"}}
    assert problems_of(tmp_path, keys) == {}
    config = build_experiment(values(tmp_path, keys))
    record = to_json(config)
    assert "hunter2" not in str(record)
    assert from_json(record).services[0] == config.services[0]
    assert config.services[0].gpus_asked == 2.0  # type: ignore[attr-defined]


def test_nnis_words_are_read(base: dict[str, Any], tmp_path: Path) -> None:
    keys = {**base, "address": ..., "cluster": ..., "image": ..., "team": ...}
    given = values(tmp_path, keys)
    given["trainingService"] |= {
        "dashboard": "dlts", "dockerImage": "i:1", "gpuNum": 1, "vcName": "research",
    }  # fmt: skip
    service: Any = build_experiment(given).services[0]
    assert (service.address, service.image, service.gpus) == ("https://dlts", "i:1", 1)
    assert (service.team, service.cluster) == ("research", ".default")


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "a secret in the file": ({"password": "hunter2"}, "password", "write 'env:NAME'"),
    "a variable that is not set": ({"password": "env:NOT_SET_HERE"}, "password", "not set here"),
    "a cluster with a path": ({"cluster": "a/../b"}, "cluster", "a name of letters"),
    "a cluster that is a path": ({"cluster": ".."}, "cluster", "a name of letters"),
    "a team of two words": ({"team": "a b"}, "team", "a name of letters"),
    "a misspelt key": ({"gpuTyp": "P40"}, "gpuTyp", "gpuType"),
    "half a GPU": ({"gpus": 0.5}, "gpus", "whole number"),
    "no place for keys": ({"sharedFolder": ...}, "sharedFolder", "keys of agents lie there"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_key_that_does_not_fit(what: str, base: dict[str, Any], tmp_path: Path) -> None:
    keys, key, text = BAD[what]
    found = problems_of(tmp_path, {**base, **keys})
    assert key in found, found
    assert text in found[key]
    assert "hunter2" not in str(found)


def test_its_jobs_have_one_node_each(base: dict[str, Any], tmp_path: Path) -> None:
    assert "one node each" in str(problems_of(tmp_path, base, trialNodes=2))
