"""The faults that every service over HTTP has, on CLOVA NSML of ours."""

from __future__ import annotations

import pytest

from tests.support.services.faults import *  # noqa: F403
from tests.support.services.nsml import NSML
from tests.support.services.played import PlayedPlatform


@pytest.fixture
def played() -> PlayedPlatform:
    return NSML
