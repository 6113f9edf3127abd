"""The key ``sinks``: each way to get it wrong, with its place; and that secrets stay references."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.experiment import parse_experiment
from dispatcher.experiment.sink_kinds import read_sink, resolved_secrets
from dispatcher.experiment.snapshot import from_json, to_json
from tests.unit.experiment.conftest import GOOD

ErrorsOf = Callable[[str], list[str]]


def test_sinks_are_read_and_kept(tmp_path: Path) -> None:
    text = GOOD + (
        "sinks:\n"
        "  - {kind: tensorboard, folder: tb, keep: 20}\n"
        "  - {kind: mlflow, uri: 'https://tracks:5000/x', token: 'env:TRACKS_TOKEN'}\n"
        "  - {kind: tensorboard, name: other, folder: /data/tb}\n"
    )

    os.environ["TRACKS_TOKEN"] = "very-secret"
    try:
        config = parse_experiment(text, "e.yml", tmp_path)
    finally:
        del os.environ["TRACKS_TOKEN"]
    assert [each.title for each in config.sinks] == ["tensorboard", "mlflow", "other"]
    kept = to_json(config)
    assert "very-secret" not in kept
    assert json.loads(kept)["experiment"]["sinks"][1]["token"] == "env:TRACKS_TOKEN"
    assert from_json(kept).sinks == config.sinks
    with pytest.raises(PermanentBackendError, match=r"'token' of the sink 'mlflow' refers to"):
        resolved_secrets(config.sinks[1])


@pytest.mark.parametrize(
    "line, error",
    [
        (
            "sinks: [{kind: tensorbord}]",
            "e.yml:7:16: there is no sink 'tensorbord' — installed are mlflow, tensorboard, wandb",
        ),
        ("sinks: [{folder: tb}]", "e.yml:7:9: a sink needs 'kind' — write one of: mlflow"),
        ("sinks: [{kind: 7}]", "e.yml:7:16: a sink needs 'kind'"),
        ("sinks: [tensorboard]", "e.yml:7:9: 'sinks[0]' must be a mapping such as"),
        ("sinks: 5", "e.yml:7:8: 'sinks' must be a list, not the number 5"),
        (
            "sinks: [{kind: tensorboard, foldr: tb}]",
            "e.yml:7:29: unknown key 'foldr' in 'sinks'; did you mean 'folder'?",
        ),
        (
            "sinks: [{kind: tensorboard, folder: ../tb}]",
            "e.yml:7:37: 'sinks[0].folder' must lie in the experiment's folder, or be an absolute",
        ),
        (
            "sinks: [{kind: tensorboard, folder: trials/x}]",
            "e.yml:7:37: 'sinks[0].folder' is a folder of the experiment's own: 'trials'",
        ),
        (
            "sinks: [{kind: tensorboard, name: ../x}]",
            "e.yml:7:35: 'sinks[0].name' must be letters, digits, '-' and '_'",
        ),
        ("sinks: [{kind: tensorboard, keep: 0}]", "e.yml:7:35: 'sinks[0].keep' must be at least 1"),
        (
            "sinks: [{kind: tensorboard}, {kind: tensorboard, folder: b}]",
            "e.yml:7:37: 'sinks' has two called 'tensorboard' — give one of them a 'name'",
        ),
        ("sinks: [{kind: mlflow}]", "e.yml:7:9: 'sinks[0]' needs the key 'uri'"),
        (
            "sinks: [{kind: mlflow, uri: 'file:///mlruns'}]",
            "e.yml:7:29: 'sinks[0].uri' must be the address of an MLflow server, as",
        ),
        (
            "sinks: [{kind: mlflow, uri: 'sqlite:///m.db'}]",
            "e.yml:7:29: 'sinks[0].uri' must be the address of an MLflow server, as",
        ),
        (
            "sinks: [{kind: mlflow, uri: 'http://me:pass@host'}]",
            "e.yml:7:29: 'sinks[0].uri' holds a password",
        ),
        (
            "sinks: [{kind: mlflow, uri: 'http://h', token: 'abcdef'}]",
            "e.yml:7:48: 'sinks[0].token' must refer to a secret, as 'env:NAME' or 'file:PATH'",
        ),
        (
            "sinks: [{kind: mlflow, uri: 'http://h', token: 'env:NOT_SET_HERE'}]",
            "e.yml:7:48: 'sinks[0].token' refers to the variable 'NOT_SET_HERE', which is not set",
        ),
        (
            "sinks: [{kind: mlflow, uri: 'http://h', username: 'env:HOME'}]",
            "e.yml:7:51: 'sinks[0]' needs 'password' as well",
        ),
        (
            "sinks: [{kind: wandb, project: x}]",
            "e.yml:7:16: 'sinks[0].kind' names Weights & Biases, whose package is not installed",
        ),
        (
            "sinks: [{kind: wandb, project: x, mode: online, keep: 3}]",
            "e.yml:7:55: 'sinks[0]' works with 'mode: offline' only",
        ),
        ("sinks: [" + "{kind: tensorboard}, " * 9 + "]", "e.yml:7:8: 'sinks' "),
    ],
)
def test_each_mistake_is_named_with_its_place(errors_of: ErrorsOf, line: str, error: str) -> None:
    """Mutation: a kind that is not there, and ten more errors about its keys."""
    errors = errors_of(GOOD + line + "\n")
    assert len(errors) == 1
    assert errors[0].replace("\n  ", " — ").startswith(error), errors[0]
    assert "abcdef" not in errors[0]
    assert "me:pass" not in errors[0]


def test_a_sink_by_hand_has_the_same_errors(tmp_path: Path) -> None:
    section = read_sink({"kind": "tensorboard", "folder": "x"}, tmp_path)
    assert section.title == "tensorboard"
    with pytest.raises(UserError, match="there is no sink 'x'"):
        read_sink({"kind": "x"}, tmp_path)
    with pytest.raises(UserError, match="unknown key 'foldr'"):
        read_sink({"kind": "tensorboard", "foldr": "x"}, tmp_path)
    with pytest.raises(UserError, match="must be the address of an MLflow server"):
        read_sink({"kind": "mlflow", "uri": "file:/x"}, tmp_path)
