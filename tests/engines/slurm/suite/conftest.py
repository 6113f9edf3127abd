"""A real cluster for the conformance suite, and what takes places there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.processes import wait_until
from tests.support.slurm_cluster import SlurmCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[SlurmCluster]:
    """A cluster of three nodes with four CPUs each."""
    with TemporaryDirectory(prefix="slurm-") as folder, SlurmCluster(Path(folder, "c")) as cluster:
        os.environ.update(cluster.environment)  # of this process alone, and of its heads
        yield cluster


@pytest.fixture(scope="session")
def service(cluster: SlurmCluster) -> Any:
    """Two jobs of two CPUs on the second node, or the third."""
    return _section(cluster, nodelist="n2", allocations=2)


@pytest.fixture(scope="session")
def scarce_service(cluster: SlurmCluster) -> Any:
    """Two jobs that fill the first node."""
    return _section(cluster, nodelist="n1", allocations=2)


@pytest.fixture
def busy_queue(cluster: SlurmCluster) -> Callable[[], AbstractContextManager[None]]:
    """All of the first node belongs to somebody whom nobody of ours can push aside."""

    @contextmanager
    def busy() -> Iterator[None]:
        job = cluster.submit("--partition=high", "--nodelist=n1", "--exclusive")
        wait_until(lambda: cluster.state(job) == "RUNNING", "somebody else has the node")
        yield
        cluster.run("scancel", job)

    return busy


@pytest.fixture
def take_away(cluster: SlurmCluster) -> Callable[[], None]:
    """Somebody more urgent needs half of the first node for a moment."""

    def take() -> None:
        cluster.submit("--partition=high", "--nodelist=n1", "--cpus-per-task=2", seconds=1)

    return take


@pytest.fixture(scope="session")
def short_wall(scarce_service: Any) -> Any:
    """The shortest wall time that Slurm knows."""
    return {**scarce_service, "wallTime": "1m"}


def _section(cluster: SlurmCluster, *, nodelist: str, allocations: int) -> Any:
    assert nodelist in cluster.nodes
    return {
        "platform": "slurm",
        "partition": "low",
        "cpus": 2,
        "wallTime": "1h",
        "options": {"nodelist": nodelist},
        "allocations": allocations,
        "headAddress": "127.0.0.1",
        "probe": False,
    }
