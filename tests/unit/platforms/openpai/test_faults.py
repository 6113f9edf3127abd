"""The faults that every service over HTTP has, on a cluster of ours."""

from __future__ import annotations

import pytest

from tests.support.services.faults import *  # noqa: F403
from tests.support.services.openpai import OPENPAI
from tests.support.services.played import PlayedPlatform


@pytest.fixture
def played() -> PlayedPlatform:
    return OPENPAI
