"""bequeath's conformance tests over a real API server, with processes as containers. Variables are
those of ``conformance.py``."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.conformance.allocations import *  # noqa: F403
from dispatcher.conformance.test_conformance import *  # noqa: F403
from tests.support.kubernetes.conformance import SERVICE, operators
from tests.support.kubernetes.real import RealCluster, real_cluster
from tests.support.kubernetes.real_operators import played

#: Of the node, of a pod that fights for its place, and of one that does not.
CPUS, MUCH, LITTLE = 8, "3500m", "100m"


@pytest.fixture(scope="session")
def weights_at() -> Iterator[str]:
    """A folder that pods and this machine see."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield folder


@pytest.fixture(scope="session")
def there() -> Iterator[RealCluster]:
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
        real_cluster(Path(folder, "cluster"), cpus=CPUS) as made,
        played(made, operators()),
    ):
        yield made


@pytest.fixture(scope="session")
def service(there: RealCluster, weights_at: str) -> dict[str, Any]:
    """Tests kill processes by their numbers, and look for them: one space of numbers for all."""
    return {
        "platform": "kubernetes",
        "kubeconfig": there.kubeconfig(),
        "image": "python:3",
        "python": sys.executable,
        "requests": {"cpu": LITTLE},
        "volumes": [{"hostPath": weights_at, "at": weights_at}],
        "pod": {"hostPID": True},
        "allocations": 2,
        "headAddress": "127.0.0.1",
        "probe": False,
        **SERVICE,
    }


@pytest.fixture(scope="session")
def scarce_service(service: dict[str, Any]) -> dict[str, Any]:
    return {**service, "requests": {"cpu": MUCH}}


@pytest.fixture
def busy_queue(
    there: RealCluster,
) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """No node has room."""

    @contextlib.contextmanager
    def busy() -> Iterator[None]:
        there.fill("somebody", CPUS - 1)
        try:
            yield
        finally:
            there.remove("pods", "somebody")

    return busy


@pytest.fixture
def take_away(there: RealCluster) -> Callable[[], None]:
    """One pod is drained."""
    return lambda: there.drain(there.running()[0]["metadata"]["name"])


@pytest.fixture(scope="session")
def short_wall(scarce_service: dict[str, Any]) -> dict[str, Any]:
    return {**scarce_service, "wallTime": "15s"}
