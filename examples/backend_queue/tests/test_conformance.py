"""bequeath's conformance tests, over a queue of our own."""

import json
import os
import time
from contextlib import contextmanager

import pytest

from dispatcher.conformance.allocations import *  # noqa: F403
from dispatcher.conformance.test_conformance import *  # noqa: F403


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """What stands below ``trainingService``: places for two experiments at once."""
    folder = str(tmp_path_factory.mktemp("many"))
    return {"platform": "queue", "queue": folder, "seats": 4, "allocations": 2}


@pytest.fixture(scope="session")
def queue(tmp_path_factory):
    """The folder of another queue, which has few places."""
    return tmp_path_factory.mktemp("few")


@pytest.fixture(scope="session")
def scarce_service(queue):
    """The service whose places are fought for."""
    return {"platform": "queue", "queue": str(queue), "seats": 2, "allocations": 2}


@pytest.fixture
def busy_queue(queue):
    """All places are taken, by something that nobody of ours can push aside."""

    @contextmanager
    def busy():
        for number in range(2):
            urgent(queue, f"busy-{number}", 600)
        yield
        for number in range(2):
            (queue / f"busy-{number}.cancel").touch()

    return busy


@pytest.fixture
def take_away(queue):
    """Something urgent takes a place for a moment."""
    return lambda: urgent(queue, "urgent", 1)


@pytest.fixture(scope="session")
def short_wall(scarce_service):
    """The service, whose places are taken back soon."""
    return {**scarce_service, "wallTime": "9s"}


def urgent(queue, name, seconds):
    """A job of somebody else's."""
    job = {
        "argv": ["sleep", str(seconds)],
        "environment": dict(os.environ),
        "wall_time": 600,
        "priority": 9,
        "since": time.time(),
    }
    (queue / f"{name}.new").write_text(json.dumps(job))
    (queue / f"{name}.new").replace(queue / f"{name}.job")
