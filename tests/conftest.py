"""What holds for all tests: those that need something that is not there say so."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent

#: Folders whose tests watch real processes, and a bound on a hang of one of them with all that
#: its fixtures start, on a machine on which much else runs (seconds).
REAL = ("integration", "faults", "system")
PATIENCE_S = 600.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the torch extra where it is not installed; be patient with processes."""
    for item in items:
        real = any(item.path.is_relative_to(HERE / folder) for folder in REAL)
        if real and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PATIENCE_S))
    if importlib.util.find_spec("torch") is not None:
        return
    skip = pytest.mark.skip(reason="needs torch: pip install 'bequeath[torch]'")
    for item in items:
        if item.get_closest_marker("torch"):
            item.add_marker(skip)
