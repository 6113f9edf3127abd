"""The faults that every service over HTTP has, on a DLTS cluster of ours."""

from __future__ import annotations

import pytest

from tests.support.services.dlts import DLTS
from tests.support.services.faults import *  # noqa: F403
from tests.support.services.played import PlayedPlatform


@pytest.fixture
def played() -> PlayedPlatform:
    return DLTS
