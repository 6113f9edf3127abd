"""A weights root on a network is measured by ``doctor``; one whose server is away is left alone."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import nfs_setup.verify
from dispatcher.cli import checkup
from dispatcher.cli.share_checkup import check_share
from dispatcher.findings import Finding, Severity
from nfs_setup.verify import PeerLost
from nfs_setup.verify.place import look
from tests.unit.cli.conftest import Shell
from tests.unit.cli.test_doctor import experiment_file
from tests.unit.nfs_setup.verify.canned_peer import CannedPeer


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    folder.mkdir()
    return folder


def shared(folder: Path, **changes: Any) -> dict[str, Any]:
    """The folder as it would look if it were NFS."""
    here = look(str(folder))
    found = replace(here, kind="nfs4", device="server:/w", options=("rw", "hard"), **changes)
    return {"facts": {**asdict(found), "options": list(found.options), "exports": []}}


def canned_share(monkeypatch: pytest.MonkeyPatch, **instead: Any) -> None:
    monkeypatch.setattr(nfs_setup.verify, "LocalPeer", lambda name: CannedPeer(name, **instead))


def test_a_local_disk_is_not_measured(share: Path) -> None:
    assert check_share("weights", share / "not" / "there") == (True, [])
    assert os.listdir(share) == []


def test_a_share_is_measured(share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canned_share(monkeypatch, look=shared(share, uid=1, mode=0o2770))
    answers, findings = check_share("weights", share)
    assert answers
    assert findings[-1].severity is Severity.OK
    assert f"bequeath nfs verify {share} --from HOST" in findings[-1].hint
    assert any("belong to" in f.text and f.severity is Severity.NOTE for f in findings)
    assert os.listdir(share) == []


def test_what_is_wrong_with_a_share_is_a_problem(
    share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = {"failed": {"doing": "begin", "code": "EROFS", "text": "read-only"}}
    canned_share(monkeypatch, look=shared(share), begin=failed)
    problems = [f for f in check_share("weights", share).findings if f.severity is Severity.PROBLEM]
    assert ["read-only" in f.text for f in problems] == [True]


def test_a_share_that_hangs_is_touched_by_nobody_else(
    bequeath: Shell, tmp_path: Path, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canned_share(monkeypatch, look=PeerLost("no answer in 10 s"))

    def touched(topic: str, *words: object, **more: object) -> list[Finding]:
        assert topic != "weights", "this would hang"
        return []

    monkeypatch.setattr(checkup, "check_folder", touched)
    monkeypatch.setattr(checkup, "check_mount", touched)
    said = bequeath("doctor", experiment_file(tmp_path, share))
    assert said.code == 1
    assert f"{share} does not answer: no answer in 10 s" in said.out
