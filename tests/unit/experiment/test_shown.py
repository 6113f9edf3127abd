"""Settings as they may be shown: secrets are masked wherever they stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dispatcher.errors import ExperimentFileError
from dispatcher.experiment.shown import shown, written_out
from dispatcher.experiment.snapshot import from_json, read_shown, to_json
from tests.unit.cli.conftest import Shell, bequeath, home
from tests.unit.queries.evolution import evolve, make_folder

__all__ = ["bequeath", "home"]

FILE = """\
experimentName: secrets
tuner: {name: Random}
searchSpace: {tokens: {_type: choice, _value: ["some-long-word", "another-word"]}}
trialCommand: python train.py
trialCodeDirectory: .
trialConcurrency: 1
trialEnvironment:
  API_TOKEN: planted-top-1234
  DATABASE: postgres://user:planted-url-1234@host/db
  HF_TOKEN: env:HF
  PLAIN: value
trainingService:
  platform: ssh
  machineList:
    - host: h.example
      user: u
      environment: {API_TOKEN: planted-machine-1234, WANDB_API_KEY: planted-key-1234}
"""

EVERYTHING = {
    "API_TOKEN": "x",
    "deep": [{"machine": {"environment": {"WANDB_API_KEY": "x"}}}, ["plain"]],
    "passwords": ["x", {"first": "x"}],
    "privateKey": "x",
    "awsAccessKey": "x",
    "connectionString": "x",
    "KEY": "x",
    "url": "https://user:x@host/path",
}


def test_by_name_through_the_whole_document() -> None:
    """Mutation: one section that is looked at, and all others that are not."""
    masked = shown(EVERYTHING)
    assert masked == {
        "API_TOKEN": "[masked]",
        "deep": [{"machine": {"environment": {"WANDB_API_KEY": "[masked]"}}}, ["plain"]],
        "passwords": ["[masked]", {"first": "[masked]"}],
        "privateKey": "[masked]",
        "awsAccessKey": "[masked]",
        "connectionString": "[masked]",
        "KEY": "[masked]",
        "url": "https://user:[masked]@host/path",
    }
    assert shown(masked) == masked


def test_a_password_with_an_at_sign_is_masked_to_its_end() -> None:
    assert shown({"db": "see postgres://me:p@ss@host/db, a@b"}) == {
        "db": "see postgres://me:[masked]@host/db, a@b"
    }


def test_what_is_no_secret_stays() -> None:
    plain = {
        "keyFile": "~/.ssh/id_ed25519",
        "password": "env:PASSWORD",
        "passphrase": "file:~/pass",
        "maxTokens": 512,
        "token": None,
        "searchSpace": {"token_mixer": {"_type": "choice", "_value": ["pool", "attention"]}},
        "monkey": "banana",
        "url": "sftp://user@host:22/path",
        "classArgs": {"tokenizer": "bert-base-uncased", "TOKENIZERS_PARALLELISM": "false"},
    }
    assert shown(plain) == plain
    assert not list(written_out(plain))


def test_what_logs_are_kept_free_of() -> None:
    assert list(written_out({"TOKENIZERS_PARALLELISM": "false", "A_TOKEN": "12345678"})) == [
        "12345678"
    ]
    # The trial is given it without the mark, and so may print it.
    assert list(written_out({"A_TOKEN": "literal:env:12345678"})) == ["env:12345678"]
    assert not list(written_out({"searchSpace": {"tokens": {"_value": ["a long word"]}}}))


def test_no_command_shows_them(
    home: Path, tmp_path: Path, bequeath: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF", "hf_planted")
    (tmp_path / "train.py").touch()
    (tmp_path / "experiment.yml").write_text(FILE)
    said = bequeath("validate", tmp_path / "experiment.yml", "--json")
    assert said.json()["experiment"]["trialEnvironment"]["HF_TOKEN"] == "env:HF"
    folder = make_folder(home, "secrets", "secrets-ab2345")
    record = {"snapshotVersion": 1, "experiment": said.json()["experiment"]}
    text = json.dumps(record).replace("[masked]", "planted-again")
    (folder / "experiment.json").write_text(text)
    evolve(folder, 1)
    shown_too = bequeath("experiment", "show", str(folder))
    for one in (said, bequeath("validate", tmp_path / "experiment.yml"), shown_too):
        assert one.code == 0, one
        assert "planted" not in one.out + one.err
    assert "some-long-word" in said.out


def test_an_error_does_not_repeat_them() -> None:
    text = json.dumps(
        {"snapshotVersion": 1, "experiment": {"trialEnvironment": {"API_TOKEN": ["planted"]}}}
    )
    with pytest.raises(ExperimentFileError, match="trialEnvironment") as caught:
        from_json(text)
    assert "planted" not in str(caught.value)
    with pytest.raises(ExperimentFileError):
        read_shown('{"planted": 1}', "here")


def test_the_record_itself_keeps_what_was_written(home: Path, tmp_path: Path) -> None:
    from dispatcher.experiment import build_experiment

    values = {
        "tuner": {"name": "Random"},
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialConcurrency": 1,
        "trialEnvironment": {"API_TOKEN": "planted-1234"},
    }
    config = build_experiment(values, base_folder=tmp_path)
    assert from_json(to_json(config)) == config
