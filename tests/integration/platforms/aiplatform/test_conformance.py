"""The conformance suite over the platform ``aiplatform``, on AI Platform Training of our own, whose
jobs are processes of this machine; judged by the published contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.services.suite import conforms

pytestmark = pytest.mark.timeout(900)


@pytest.mark.slow
@pytest.mark.extended  # of seven services over HTTP three run it at each landing
@pytest.mark.extended
def test_a_service_of_our_own(tmp_path: Path) -> None:
    printed = conforms("tests.support.services.google:AI_PLATFORM", tmp_path)
    assert "skipped" not in printed, printed
