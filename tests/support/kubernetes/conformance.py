"""bequeath's conformance tests over a server of our own, of the version ``PLAYED_VERSION``.

``PLAYED_SERVICE`` holds what else stands below ``trainingService`` (JSON), and ``PLAYED_OPERATORS``
names a function that returns the controllers which are played, as ``module:function``.
"""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dispatcher.conformance.allocations import *  # noqa: F403
from dispatcher.conformance.test_conformance import *  # noqa: F403
from tests.support.kubernetes.cluster import Cluster, cluster
from tests.support.kubernetes.operators import Operator

VERSION = os.environ.get("PLAYED_VERSION", "1.36")
SERVICE: dict[str, Any] = json.loads(os.environ.get("PLAYED_SERVICE", "{}"))

#: More than any test has pods.
MANY = 20


def operators() -> Sequence[Operator]:
    """New controllers of what is played."""
    named = os.environ.get("PLAYED_OPERATORS")
    made: Sequence[Operator] = pkgutil.resolve_name(named)() if named else ()
    return made


def service_on(there: Cluster, folder: Path) -> dict[str, Any]:
    """What stands below ``trainingService``."""
    return {
        "platform": "kubernetes",
        "kubeconfig": str(there.api.kubeconfig(folder)),
        "image": "our/own:1",
        "python": sys.executable,
        "workFolder": str(folder / "work"),
        "allocations": 2,
        "headAddress": "127.0.0.1",
        "probe": False,
        **SERVICE,
    }


@pytest.fixture(scope="session")
def weights_at(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder that pods and this machine see."""
    return str(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path]]:
    """A cluster that has places for all."""
    folder = tmp_path_factory.mktemp("many")
    with cluster(folder, VERSION, places=MANY, operators=operators()) as made:
        yield made, folder


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path]]:
    """Another one, whose places are fought for."""
    folder = tmp_path_factory.mktemp("few")
    with cluster(folder, VERSION, places=2, operators=operators()) as made:
        yield made, folder


@pytest.fixture(scope="session")
def service(many: tuple[Cluster, Path]) -> dict[str, Any]:
    return service_on(*many)


@pytest.fixture(scope="session")
def scarce_service(few: tuple[Cluster, Path]) -> dict[str, Any]:
    return service_on(*few)


@pytest.fixture
def busy_queue(
    few: tuple[Cluster, Path],
) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """No node has room."""
    there, _ = few

    @contextlib.contextmanager
    def busy() -> Iterator[None]:
        there.places = 0
        try:
            yield
        finally:
            there.places = 2

    return busy


@pytest.fixture
def take_away(few: tuple[Cluster, Path]) -> Callable[[], None]:
    """One node is drained."""
    there, _ = few

    def drain() -> None:
        there.evict(there.pods()[0]["metadata"]["name"])

    return drain


@pytest.fixture(scope="session")
def short_wall(scarce_service: dict[str, Any]) -> dict[str, Any]:
    return {**scarce_service, "wallTime": "12s"}
