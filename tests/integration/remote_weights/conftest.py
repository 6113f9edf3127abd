"""Remote roots of four kinds: in memory, a folder, a real sshd, a real S3 server."""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from tests.integration.experiment.conftest import Lab
from tests.support import s3_server, sshd
from tests.support.s3_server import S3Server
from tests.support.sshd import Sshd
from trial_runtime.weights.remote.address import RemoteRoot

CODE = Path(__file__).parent / "code"
KINDS = ("memory", "file", "sftp", "s3")


class RemoteLab(Lab):
    """Experiments with a cache of weights of their own, and what came of them."""

    def create(self, *words: Any, **keys: Any) -> Path:
        """As :meth:`Lab.create`."""
        keys.setdefault("weightsCache", {"directory": str(self.base / "cache")})
        return super().create(*words, **keys)

    def finals(self, folder: Path) -> dict[int, float]:
        """What each trial reported: how many ancestors it has."""
        rows = self.rows(folder)
        return {row.trial: float(row.value) for row in rows if isinstance(row, e.FinalReported)}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[RemoteLab]:
    """A place for whole experiments."""
    one = RemoteLab(tmp_path)
    try:
        yield one
    finally:
        one.close()


@pytest.fixture(scope="package")
def s3() -> Iterator[S3Server]:
    """One S3 server for all tests here."""
    if why := s3_server.why_not():
        pytest.skip(why)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_S3_SECRET", "not-to-be-seen")
        with s3_server.running() as server:
            yield server


@pytest.fixture(scope="package")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One sshd for all tests here."""
    if why := sshd.why_not():
        pytest.skip(why)
    with sshd.running(tmp_path_factory.mktemp("ssh") / "server") as server:
        yield server


def sftp_options(ssh: Sshd, **changes: Any) -> dict[str, Any]:
    """What has to be said to log in to it."""
    return {
        "key_filename": str(ssh.folder / "client_key"),
        "known_hosts": str(ssh.folder / "known_hosts"),
        "allow_agent": False,
        "look_for_keys": False,
        **changes,
    }


@pytest.fixture(params=KINDS)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> RemoteRoot:
    """An empty remote root."""
    scope = f"lab-{secrets.token_hex(4)}"
    if request.param == "memory":
        return RemoteRoot(f"memory://{secrets.token_hex(4)}", {}, scope)
    if request.param == "file":
        return RemoteRoot(f"file://{tmp_path}/remote", {}, scope)
    if request.param == "sftp":
        ssh: Sshd = request.getfixturevalue("ssh")
        url = f"sftp://{getpass.getuser()}@127.0.0.1:{ssh.port}{tmp_path}/remote"
        return RemoteRoot(url, sftp_options(ssh), scope)
    server: S3Server = request.getfixturevalue("s3")
    return RemoteRoot(f"s3://{s3_server.BUCKET}/roots", server.options(), scope)
