"""The conformance suite over platform ``dlts``, on a cluster of our own whose jobs are processes
of this machine; judged by the derived contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.services.suite import conforms

pytestmark = pytest.mark.timeout(900)


@pytest.mark.slow
@pytest.mark.extended  # of seven services over HTTP three run it at each landing
@pytest.mark.extended
def test_a_cluster_of_our_own(tmp_path: Path) -> None:
    printed = conforms("tests.support.services.dlts:DLTS", tmp_path)
    assert "skipped" not in printed, printed
