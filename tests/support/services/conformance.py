"""bequeath's conformance tests over a service of ours, that of ``PLAYED_PLATFORM``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.conformance.allocations import *  # noqa: F403
from dispatcher.conformance.rig import CODE
from dispatcher.conformance.test_conformance import *  # noqa: F403
from dispatcher.platforms.http_jobs import allocator
from tests.support.services.played import platform_named, whole_section
from tests.support.services.server import PlayedService

# A look costs this machine nothing.
allocator.QUICK_LOOK_S, allocator.SLOW_LOOK_S, allocator.WHY_EVERY_S = 0.3, 1.0, 0.5

PLAYED = platform_named(os.environ["PLAYED_PLATFORM"])

#: More than any test has jobs.
MANY = 20

Served = tuple[PlayedService, Path]


def section_on(served: Served, **keys: Any) -> dict[str, Any]:
    """What stands below ``trainingService``. All of this machine is mounted there, where it is: the
    suite's trials look for files of its own."""
    service, folder = served
    everything = {"mounts": {"/": "/"}, "codeFolder": str(CODE)}
    return whole_section(PLAYED, service, folder, **everything, **keys)


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that has places for all."""
    folder = tmp_path_factory.mktemp("many")
    with PLAYED.serving(folder, MANY) as made:
        yield made, folder


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Another one, whose places are fought for."""
    folder = tmp_path_factory.mktemp("few")
    with PLAYED.serving(folder, 2) as made:
        yield made, folder


@pytest.fixture(scope="session")
def service(many: Served) -> dict[str, Any]:
    return section_on(many)


@pytest.fixture(scope="session")
def scarce_service(few: Served) -> dict[str, Any]:
    return section_on(few)


@pytest.fixture
def busy_queue(few: Served) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """There is no place for anything new."""
    played, _ = few

    @contextlib.contextmanager
    def busy() -> Iterator[None]:
        played.machines.places = 0
        try:
            yield
        finally:
            played.machines.places = 2

    return busy


@pytest.fixture
def take_away(few: Served) -> Callable[[], None]:
    """Something more urgent takes a place of ours."""
    played, _ = few
    return lambda: played.machines.stop(played.machines.running()[0], "preempted", 3.0)


@pytest.fixture(scope="session")
def short_wall(few: Served) -> dict[str, Any]:
    return section_on(few, wallTime="12s")
