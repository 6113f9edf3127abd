"""The conformance suite over the platform ``azureml``, on a workspace of our own whose jobs are
processes of this machine; judged by the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.services.suite import conforms

pytestmark = pytest.mark.timeout(900)


@pytest.mark.slow
@pytest.mark.extended
def test_a_workspace_of_our_own(tmp_path: Path) -> None:
    printed = conforms("tests.support.services.azureml:AZUREML", tmp_path)
    assert "skipped" not in printed, printed
