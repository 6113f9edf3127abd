"""Options and fixtures of the conformance suite: ``-p dispatcher.conformance.plugin``.

To call the tests from a suite of your own, name this module in ``pytest_plugins``, and write a
fixture ``service`` that returns the section as a mapping.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from dispatcher.conformance.rig import Rig, new_experiment
from dispatcher.experiment.yaml_text import read_source

pytest.register_assert_rewrite(
    "dispatcher.conformance.test_conformance", "dispatcher.conformance.allocations"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--service FILE`` and ``--weights-root PATH``."""
    group = parser.getgroup("bequeath")
    group.addoption(
        "--service", metavar="FILE", help="YAML file with what stands below 'trainingService'"
    )
    group.addoption(
        "--weights-root",
        metavar="PATH",
        help="the 'weightsRoot' of the experiments; their own folders if not given",
    )


@pytest.fixture(scope="session")
def service(request: pytest.FixtureRequest) -> Any:
    """The training service to try, or a list of several."""
    path = request.config.getoption("--service", None)
    if path is None:
        pytest.skip("name the service to try: --service FILE")
    return read_source(Path(path).read_text(encoding="utf-8"), str(path)).value


@pytest.fixture(scope="session")
def weights_at(request: pytest.FixtureRequest) -> str | None:
    """The folder for weights, for services that reach the head's through a share; None: usual."""
    path: str | None = request.config.getoption("--weights-root", None)
    return path


Experiments = Callable[..., Any]


@pytest.fixture(scope="session")
def new_folder(
    service: Any, weights_at: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Experiments:
    """Create experiments on the service, each in a folder of its own.

    Args:
        service: the section ``trainingService``.
        weights_at: their ``weightsRoot``; None leaves it out.
        tmp_path_factory: makes the folders.
    """
    keys = {} if weights_at is None else {"weightsRoot": weights_at}

    def make(**more: Any) -> Any:
        return new_experiment(service, tmp_path_factory.mktemp("conformance"), **keys, **more)

    return make


@pytest.fixture(scope="session")
def rig(new_folder: Experiments) -> Iterator[Rig]:
    """A head for all tests that leave it unchanged."""
    one = Rig(new_folder())
    try:
        one.launch()
        yield one
    finally:
        one.close(leave_running=False)


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """Numbers of trials that no other test uses."""
    return itertools.count(1)


@pytest.fixture(scope="session")
def scarce_service(service: Any) -> Any:
    """The service of the tests for allocations, whose places ``busy_queue`` and ``take_away`` are
    about; the one of all tests, unless overridden."""
    return service


@pytest.fixture(scope="session")
def scarce_folder(new_folder: Experiments, scarce_service: Any) -> Experiments:
    """Create experiments on that service, each in a folder of its own."""
    return lambda **more: new_folder(**{"trainingService": scarce_service, **more})


@pytest.fixture
def busy_queue() -> Callable[[], AbstractContextManager[None]]:
    """A context in which the scheduler has no place for anything new. To be overridden."""
    pytest.skip("write a fixture 'busy_queue': a context in which there is no place")


@pytest.fixture
def take_away() -> Callable[[], None]:
    """A function by which something more urgent takes a place of ours. To be overridden."""
    pytest.skip("write a fixture 'take_away': a function that takes one place back")


@pytest.fixture(scope="session")
def short_wall() -> Any:
    """The service with a wall time of some seconds. To be overridden."""
    pytest.skip("write a fixture 'short_wall': the service, with places for seconds only")
