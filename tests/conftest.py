"""What holds for all tests: those that need something that is not there say so."""

from __future__ import annotations

import importlib.util

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the torch extra where it is not installed."""
    if importlib.util.find_spec("torch") is not None:
        return
    skip = pytest.mark.skip(reason="needs torch: pip install 'bequeath[torch]'")
    for item in items:
        if item.get_closest_marker("torch"):
            item.add_marker(skip)
