"""A server for tests, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.platforms.kubernetes.api.kubeconfig import read_access
from dispatcher.platforms.kubernetes.api.server import ApiServer
from tests.support.kubernetes import api_server


@pytest.fixture(params=["1.20", "1.36"])
def version(request: pytest.FixtureRequest) -> str:
    """The version that a server plays."""
    return str(request.param)


@pytest.fixture
def there(version: str) -> Iterator[api_server.ApiServer]:
    """A server; what it sent or got against the contract fails the test."""
    with api_server.serving(version) as server:
        yield server


@pytest.fixture
def client(there: api_server.ApiServer, tmp_path: Path) -> Iterator[ApiServer]:
    """A client of it, by a kubeconfig."""
    made = ApiServer(read_access([there.kubeconfig(tmp_path)]))
    yield made
    made.close()
