"""``weightsCache``: a word or a section, and what agents are told of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import UserError
from dispatcher.experiment import load_experiment
from dispatcher.wiring.weights import cache_of
from trial_runtime.agent.config import CacheSpec

GIB = 1 << 30


def told(tmp_path: Path, text: str) -> CacheSpec | None:
    file = tmp_path / "experiment.yaml"
    file.write_text(
        "searchSpace: {x: {_type: uniform, _value: [0, 1]}}\n"
        "tuner: {name: Random}\n"
        "trialCommand: echo\n"
        "trialConcurrency: 1\n"
        f"{text}\n"
    )
    return cache_of(load_experiment(file))


@pytest.mark.parametrize(
    "text, spec",
    [
        ("", CacheSpec(10 * GIB)),
        ("weightsCache: auto", CacheSpec(10 * GIB)),
        ("weightsCache: off", None),
        ("weightsCache: false", None),
        ("weights_cache: Always", CacheSpec(10 * GIB, always=True)),
        ("weightsCache: {size: 5gb}", CacheSpec(5 * GIB)),
        ("weightsCache: {size: 1gb, directory: /scratch/c}", CacheSpec(GIB, "/scratch/c")),
        ("weightsCache: {when: always, directory: ~/c}", CacheSpec(10 * GIB, "~/c", True)),
    ],
)
def test_ways_to_write_it(tmp_path: Path, text: str, spec: Any) -> None:
    assert told(tmp_path, text) == spec


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("weightsCache: sometimes", "weightsCache"),
        ("weightsCache: {size: 0}", "must be more than nothing"),
        ("weightsCache: {directory: here}", "from the root of each host"),
        ("weightsCache: {folder: /x}", "unknown key 'folder'"),
        ("weightsCache: 5gb", "weightsCache"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        told(tmp_path, text)
