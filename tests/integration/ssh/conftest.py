"""A real sshd on the loopback, shared by the tests of a module, and a connection to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.ssh import SshConnection, connect
from tests.support import sshd


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip all here, with the reason, where no sshd can be started."""
    reason = sshd.why_not()
    here = Path(__file__).parent
    for item in items:
        if reason and item.path.is_relative_to(here):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes what belongs to whoever runs it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "bequeath"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Sshd]:
    """An sshd with its defaults; no test may harm it."""
    with sshd.running(tmp_path_factory.mktemp("sshd") / "server") as made:
        yield made


@pytest.fixture(scope="module")
def kept(server: sshd.Sshd) -> Iterator[list[SshConnection]]:
    """Connections to it, the newest last."""
    made: list[SshConnection] = []
    yield made
    for each in made:
        each.close()


@pytest.fixture
def connection(server: sshd.Sshd, kept: list[SshConnection]) -> SshConnection:
    """A connection to it, the same for all tests of a module as long as it stands: one that ends
    fails one test. No test may close it."""
    if not kept or not kept[-1].is_alive():
        kept.append(connect(server.target()))
    return kept[-1]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[sshd.Sshd]:
    """An sshd that a test may do anything to."""
    with sshd.running(tmp_path / "own") as made:
        yield made
