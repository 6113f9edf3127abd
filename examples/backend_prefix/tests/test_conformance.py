"""bequeath's conformance tests, over a place that is merely nice."""

import sys

import pytest

from dispatcher.conformance.test_conformance import *  # noqa: F403


@pytest.fixture(scope="session")
def service():
    """What stands below ``trainingService``."""
    place = {"name": "gentle", "prefix": ["nice", "-n", "5"], "python": sys.executable}
    return {"platform": "prefix", "places": [place]}
