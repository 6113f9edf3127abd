"""What is wrong with a remote root is said in one clear error, before anything starts."""

from __future__ import annotations

import getpass
import importlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.errors import BackendError, DispatcherError, UserError
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from tests.integration.remote_weights.conftest import sftp_options
from tests.support.ports import free_port
from tests.support.s3_server import BUCKET, S3Server
from tests.support.sshd import Sshd, make_key
from trial_runtime.recorded_hosts import recorded_hosts
from trial_runtime.weights.remote.faults import RemoteRefused
from trial_runtime.weights.remote.sftp import connected

Refusal = Callable[..., DispatcherError]


@pytest.fixture
def refusal(tmp_path: Path) -> Refusal:
    """Try to lay an experiment down with a root that will not do; nothing may be left."""

    def refused(url: str, **options: Any) -> DispatcherError:
        home = tmp_path / "experiments"
        config = build_experiment(
            {
                "experimentName": "lab",
                "experimentWorkingDirectory": str(home),
                "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
                "tuner": {"name": "Random"},
                "trialCommand": "true",
                "trialCodeDirectory": str(Path(__file__).parent / "code"),
                "trialConcurrency": 1,
                "weightsRoot": url,
                "weightsRootOptions": options,
            }
        )
        with pytest.raises(DispatcherError) as caught:
            create(config)
        assert not home.exists() or list(home.iterdir()) == []
        assert "not-to-be-seen" not in str(caught.value)
        return caught.value

    return refused


def test_a_bucket_that_is_not_there(refusal: Refusal, s3: S3Server) -> None:
    error = refusal("s3://no-such-bucket/w", **s3.options())
    assert isinstance(error, BackendError)
    assert "no such place" in str(error)
    assert "make the bucket" in error.hint


def test_credentials_that_are_not_taken(refusal: Refusal, s3: S3Server) -> None:
    assert s3.ask("POST", "/moto-api/reset-auth", b"0") == 200
    try:
        error = refusal(f"s3://{BUCKET}/w", **s3.options())
    finally:
        assert s3.ask("POST", "/moto-api/reset-auth", b"1000000000") == 200
    assert "may not be used" in str(error)
    assert "check the credentials" in error.hint


def test_no_credentials_at_all(
    refusal: Refusal, s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    error = refusal(f"s3://{BUCKET}/w", endpoint_url=s3.endpoint)
    assert "name the credentials in weightsRootOptions" in error.hint


def test_an_endpoint_where_nobody_is(refusal: Refusal, s3: S3Server) -> None:
    port = free_port()
    quickly = {"connect_timeout": 2, "retries": {"max_attempts": 0}}
    error = refusal(f"s3://{BUCKET}/w", **s3.options(port, config_kwargs=quickly))
    assert "does not do its work" in str(error)
    assert "can be reached from here" in error.hint


def test_a_reference_that_leads_nowhere(refusal: Refusal, s3: S3Server) -> None:
    error = refusal(f"s3://{BUCKET}/w", **s3.options(secret="env:NO_SUCH_VARIABLE"))
    assert isinstance(error, UserError)
    assert "refers to the variable 'NO_SUCH_VARIABLE'" in str(error)


def test_options_that_fsspec_does_not_know(refusal: Refusal, ssh: Sshd) -> None:
    url = f"sftp://{getpass.getuser()}@127.0.0.1:{ssh.port}/tmp/w"
    error = refusal(url, **sftp_options(ssh, nonsense=1))
    assert "weightsRootOptions do not fit" in str(error)


def test_a_package_that_is_missing(
    refusal: Refusal, monkeypatch: pytest.MonkeyPatch, s3: S3Server
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)  # as if it were not installed
    monkeypatch.delitem(importlib.import_module("fsspec.registry")._registry, "s3", raising=False)
    error = refusal(f"s3://{BUCKET}/w", **s3.options())
    assert "pip install 'bequeath[s3]'" in str(error)


def test_a_host_whose_key_is_not_known(refusal: Refusal, ssh: Sshd, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    url = f"sftp://{getpass.getuser()}@127.0.0.1:{ssh.port}{tmp_path}/w"
    error = refusal(url, **sftp_options(ssh, known_hosts=str(tmp_path / "empty")))
    assert "host key that is not known" in str(error)
    assert "known_hosts" in error.hint
    assert not (tmp_path / "w").exists()


def test_a_host_that_was_made_known_by_bequeath_hosts_add(
    ssh: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: only OpenSSH's files are read."""
    options = sftp_options(ssh)
    del options["known_hosts"]
    options |= {"port": ssh.port, "username": getpass.getuser()}
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "ours"))
    with pytest.raises(RemoteRefused, match="not known") as caught:
        connected("127.0.0.1", options)
    assert "bequeath hosts add" in caught.value.hint
    (tmp_path / "ours").mkdir()
    shutil.copy(ssh.folder / "known_hosts", recorded_hosts())
    connected("127.0.0.1", options).close()


def test_a_host_that_shows_another_key(refusal: Refusal, ssh: Sshd, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    words = (tmp_path / "other.pub").read_text().split()[:2]
    (tmp_path / "known").write_text(f"[127.0.0.1]:{ssh.port} {' '.join(words)}\n")
    url = f"sftp://{getpass.getuser()}@127.0.0.1:{ssh.port}{tmp_path}/w"
    error = refusal(url, **sftp_options(ssh, known_hosts=str(tmp_path / "known")))
    assert "another key than known_hosts has" in error.hint


@pytest.mark.parametrize("order", ["before", "behind"])
def test_a_host_that_shows_a_key_that_is_revoked(
    refusal: Refusal, ssh: Sshd, tmp_path: Path, order: str
) -> None:
    """Another line may know the same key. Mutation: paramiko passes over such lines, and logs in
    at whoever has stolen it."""
    known = (ssh.folder / "known_hosts").read_text()
    revoked = f"@revoked * {' '.join(known.split()[1:3])}\n"
    text = revoked + known if order == "before" else known + revoked
    (tmp_path / "known").write_text("# ours\n@revoked broken\n@revoked * ssh-rsa !\n" + text)
    url = f"sftp://{getpass.getuser()}@127.0.0.1:{ssh.port}{tmp_path}/w"
    error = refusal(url, **sftp_options(ssh, known_hosts=str(tmp_path / "known")))
    number = 4 if order == "before" else 4 + len(known.splitlines())
    assert f"host key that is revoked in {tmp_path / 'known'}, line {number}" in str(error)
    assert not (tmp_path / "w").exists()


def test_a_key_that_the_host_does_not_take(refusal: Refusal, ssh: Sshd, tmp_path: Path) -> None:
    make_key(tmp_path / "stranger")
    url = f"sftp://{getpass.getuser()}@127.0.0.1:{ssh.port}{tmp_path}/w"
    error = refusal(url, **sftp_options(ssh, key_filename=str(tmp_path / "stranger")))
    assert "name the credentials" in error.hint


def test_a_folder_that_cannot_be_made(refusal: Refusal, ssh: Sshd, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    url = f"sftp://{getpass.getuser()}@127.0.0.1:{ssh.port}{tmp_path}/file/w"
    assert isinstance(refusal(url, **sftp_options(ssh)), BackendError)


def test_doctor_tries_the_store_too(s3: S3Server, tmp_path: Path) -> None:
    options = json.dumps(s3.options())
    file = tmp_path / "experiment.yml"
    text = (
        "searchSpace: {x: {_type: uniform, _value: [0, 1]}}\ntuner: {name: Random}\n"
        "trialCommand: 'true'\ntrialConcurrency: 1\n"
    )
    said = []
    for bucket in (BUCKET, "no-such-bucket"):
        file.write_text(f"{text}weightsRoot: s3://{bucket}/w\nweightsRootOptions: {options}\n")
        words = ["doctor", str(file), "--json", "--folder", str(tmp_path / "home")]
        findings = json.loads(CliRunner().invoke(app, words).stdout)["findings"]
        said += [each for each in findings if "s3://" in each["text"]]
    assert [each["level"] for each in said] == ["ok", "problem"]
    assert "make the bucket" in said[1]["hint"]
