"""A real cluster for the conformance suite, and what takes places there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.ray_cluster import PYTHON, RayCluster

#: Nodes with one place each, of which a test takes one away while another is free.
SINGLE = ("s1", "s2", "s3")


@pytest.fixture(scope="session")
def cluster() -> Iterator[RayCluster]:
    """A cluster of one node with many places, and three with one each."""
    nodes = {"n1": {"CPU": 8, "many": 8}, **{name: {"CPU": 1, "few": 1} for name in SINGLE}}
    with TemporaryDirectory(prefix="ray-") as folder, RayCluster(Path(folder, "c"), nodes) as one:
        yield one


@pytest.fixture(scope="session")
def service(cluster: RayCluster) -> Any:
    """Two actors where there is much room."""
    return section(cluster, "many")


@pytest.fixture(scope="session")
def scarce_service(cluster: RayCluster) -> Any:
    """Two actors on two of three nodes."""
    return section(cluster, "few")


@pytest.fixture
def busy_queue(cluster: RayCluster) -> Callable[[], AbstractContextManager[None]]:
    """All of the three nodes belong to somebody else."""
    return lambda: cluster.held("few", len(SINGLE))


@pytest.fixture
def take_away(cluster: RayCluster) -> Iterator[Callable[[], None]]:
    """A node with an actor of ours loses its power."""
    crashed: list[str] = []

    def take() -> None:
        crashed.append(cluster.nodes_with_agents()[0])
        cluster.crash(crashed[0])

    yield take
    for name in crashed:
        cluster.start(name)
    cluster.wait_for_nodes()


@pytest.fixture(scope="session")
def short_wall(scarce_service: Any) -> Any:
    """The service, whose actors end soon."""
    return {**scarce_service, "wallTime": "8s"}


def section(cluster: RayCluster, resource: str, **keys: Any) -> Any:
    """Two actors, each with one of a resource."""
    return {
        "platform": "ray",
        "address": cluster.address,
        "python": str(PYTHON),
        "trialPython": sys.executable,
        "actorResources": {resource: 1},
        "allocations": 2,
        "probe": False,
        **keys,
    }
