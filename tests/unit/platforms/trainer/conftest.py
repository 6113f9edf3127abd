"""A server with Kubeflow Trainer's kinds, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.platforms.kubernetes.api.kubeconfig import read_access
from dispatcher.platforms.kubernetes.api.server import ApiServer
from tests.support.kubernetes import api_server
from tests.support.kubernetes.trainer_controller import trainer


@pytest.fixture(params=["1.20", "1.36"])
def version(request: pytest.FixtureRequest) -> str:
    """The version that a server plays: the older one publishes all fields in one document."""
    return str(request.param)


@pytest.fixture
def there(version: str) -> Iterator[api_server.ApiServer]:
    """A server; what it sent or got against the contract fails the test."""
    operators = trainer()
    with api_server.serving(version, crds=[each.crd for each in operators]) as server:
        for keeper in operators[1:]:
            server.keep(keeper.crd, *keeper.given)
        yield server


@pytest.fixture
def client(there: api_server.ApiServer, tmp_path: Path) -> Iterator[ApiServer]:
    """A client of it, by a kubeconfig."""
    made = ApiServer(read_access([there.kubeconfig(tmp_path)]))
    yield made
    made.close()
