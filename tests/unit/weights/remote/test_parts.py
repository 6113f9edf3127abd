"""The small parts: references to secrets, what may pass, which package is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from trial_runtime.weights.remote import credentials, faults
from trial_runtime.weights.remote import record as records
from trial_runtime.weights.remote.address import BadRoot, RemoteRoot, check_url
from trial_runtime.weights.remote.faults import RemoteRefused, RemoteUnavailable
from trial_runtime.weights.remote.opening import open_filesystem


def test_references_are_looked_up_where_they_are_needed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    options = {
        "key": "plain",
        "secret": "env:SECRET",
        "client_kwargs": {"token": f"file:{tmp_path}/secret", "verify": False},
    }
    environ = {"SECRET": "from the environment"}
    assert credentials.resolve(options, environ) == {
        "key": "plain",
        "secret": "from the environment",
        "client_kwargs": {"token": "from a file", "verify": False},
    }
    assert credentials.secrets(options, environ) == ["from the environment", "from a file"]
    assert credentials.secrets(options, {}) == ["from a file"]


def test_references_in_lists_are_references() -> None:
    """Mutation: lists are taken as they are."""
    options = {"args": ["plain", "env:SECRET", {"tokens": ["env:OTHER"]}], "flags": [1, None]}
    environ = {"SECRET": "one", "OTHER": "two"}
    assert credentials.secrets(options, environ) == ["one", "two"]
    resolved = credentials.resolve(options, environ)
    assert resolved == {"args": ["plain", "one", {"tokens": ["two"]}], "flags": [1, None]}
    assert credentials.written_out({"tokens": ["env:A", "written out"]}) == "tokens[1]"
    with pytest.raises(BadRoot, match=r"args\[1\] refers to"):
        credentials.resolve(options, {})


@pytest.mark.parametrize("text", ["env:NOT_SET", "file:/not/there"])
def test_references_that_lead_nowhere(text: str) -> None:
    with pytest.raises(BadRoot, match=r"weightsRootOptions\.a\.secret refers to"):
        credentials.resolve({"a": {"secret": text}}, {})


def test_homes_are_those_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".s3").write_text("mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert credentials.resolve({"secret": "file:~/.s3"})["secret"] == "mine"


@pytest.mark.parametrize(
    "error,kind",
    [
        (ConnectionRefusedError(111, "Connection refused"), RemoteUnavailable),
        (TimeoutError(), RemoteUnavailable),
        (EOFError(), RemoteUnavailable),
        (OSError("Failure"), RemoteUnavailable),  # what a full server says by SFTP
        (PermissionError(13, "Permission denied"), RemoteRefused),
        (FileNotFoundError(2, "no bucket"), RemoteRefused),
        (ValueError("bad endpoint"), RemoteRefused),
    ],
)
def test_what_may_pass_and_what_does_not(error: Exception, kind: type[Exception]) -> None:
    assert isinstance(error, faults.known())
    remote_error = faults.as_remote_error(error, "s3://bucket")
    assert type(remote_error) is kind
    assert remote_error.where == "s3://bucket"
    assert remote_error.hint


def test_names_of_save_paths_do_not_meet() -> None:
    paths = ["a/b", "a%2Fb", "a=2Fb", "a b", "a_b", "~a", "x" * 210, "x" * 211, "..a", "A"]
    assert len({records.objects_of(path) for path in paths}) == len(paths)


def test_urls() -> None:
    assert check_url("s3://bucket/folder") == "s3://bucket/folder"
    assert RemoteRoot("S3://b/f/", {}, "lab-1").shown == "S3://b/f/lab-1"
    assert RemoteRoot("memory://x").in_memory
    with pytest.raises(BadRoot, match="unknown protocol"):
        check_url("gopher://x")


def test_the_experiments_place_lies_below_the_root(tmp_path: Path) -> None:
    _, base = open_filesystem(RemoteRoot(f"file://{tmp_path}/a/", {}, "lab-1"))
    assert base == f"{tmp_path}/a/lab-1"
