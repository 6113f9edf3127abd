"""The faults that every service over HTTP has, on one of ours."""

from __future__ import annotations

import pytest

from tests.support.services.dlc import DLC
from tests.support.services.faults import *  # noqa: F403
from tests.support.services.played import PlayedPlatform


@pytest.fixture
def played() -> PlayedPlatform:
    return DLC
