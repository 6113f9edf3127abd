"""What holds for all tests: those that need something that is not there say so."""

from __future__ import annotations

import gc
import importlib.util
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.support import lengths

HERE = Path(__file__).parent

#: What draws examples draws the same ones each time, and no example is ever too slow: a suite that
#: passes here passes elsewhere. For others: ``--hypothesis-profile=default``.
settings.register_profile(
    "same",
    max_examples=lengths.some_of(100),
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")

#: For whoever asks only whether a test fails (``tests/mutations``): no search for the smallest
#: example, which may take minutes.
settings.register_profile(
    "unshrunk",
    settings.get_profile("same"),
    max_examples=100,
    phases=[phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)],
)

#: Folders whose tests watch real processes, and a bound on a hang of one of them with all that
#: its fixtures start, on a machine on which much else runs (seconds).
REAL = ("engines", "integration", "faults", "system", "fuzz", "upgrade")
PATIENCE_S = 600.0


#: Tests that show again at length, in one more place or in greater number, what a quicker one shows
#: at each landing. ``make test EXTENDED=1`` runs them as well.
EXTENDED = "make test EXTENDED=1"


def pytest_collection() -> None:
    """Collect tests without Python's collector, which would walk what is there for each few more:
    a million objects, and all trees of modules that pytest writes anew."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let it work from here on, on what the tests make."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is not run at each landing, and what needs the torch extra where it is not
    installed; be patient with processes."""
    if not lengths.EXTENDED:
        for item in items:
            if item.get_closest_marker("extended"):
                item.add_marker(pytest.mark.skip(reason=EXTENDED))
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


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Look for a browser before anything else is made for a test that needs one."""
    if any("chromium" in mark.args for mark in item.iter_markers("needs")):
        from tests.support.browser import demand_chromium

        demand_chromium()
