"""Addresses of other services that an answer names: a token, or a signature, goes there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.http_services.errors import Unreachable
from dispatcher.platforms.http_jobs.credentials import named_at

SECTION: Any = SimpleNamespace(authorities=lambda: "")


@pytest.mark.parametrize("url", [
    "http://169.254.169.254/metadata", "file:///etc/passwd", "None", "", "https://", "https://[x",
    "https://me@history.tests/",
])  # fmt: skip
def test_nothing_goes_in_clear_to_whom_an_answer_names(url: str) -> None:
    """Mutation: a token for Azure goes to any address, unencrypted."""
    with pytest.raises(Unreachable, match="by https"):
        named_at(SECTION, url, "https://management.tests")


def test_one_by_https_is_asked_and_one_in_clear_by_those_who_are() -> None:
    found = named_at(SECTION, "https://history.tests/discovery", "https://management.tests")
    assert found.server == "https://history.tests"
    assert named_at(SECTION, "http://127.0.0.1:8/x", "http://127.0.0.1:9").server.endswith(":8")
