"""The conformance suite over platform ``nsml``, on a service of our own whose runs are processes
of this machine; judged by the derived contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.services.suite import conforms

pytestmark = pytest.mark.timeout(900)


@pytest.mark.slow
@pytest.mark.extended  # of seven services over HTTP three run it at each landing
def test_a_service_of_our_own(tmp_path: Path) -> None:
    printed = conforms("tests.support.services.nsml:NSML", tmp_path)
    assert "skipped" not in printed, printed
