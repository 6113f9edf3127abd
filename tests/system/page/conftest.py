"""The page in a real Chromium, over made-up searches of any size."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.support.made_search import MadeSearch

#: The folder in which pictures are kept; a temporary one if it names none.
PICTURES = "BEQUEATH_PICTURES"


@functools.cache
def search_of(trials: int, hostile: bool = False) -> MadeSearch:
    """A search of so many trials that are over, and some that run or wait; made once."""
    search = MadeSearch(trials, hostile=hostile)
    if trials > 1:
        for state, many in (("running", 40), ("blocked", 17), ("queued", 3)):
            for _ in range(many):
                search.add(state=state)
    return search


@pytest.fixture(scope="session")
def pictures() -> Path:
    folder = Path(os.environ.get(PICTURES) or tempfile.mkdtemp(prefix="bequeath-pictures-"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def _window(pictures: Path) -> Iterator[Browser]:
    browser = Browser(pictures)
    yield browser
    browser.close()


@pytest.fixture
def browser(_window: Browser) -> Iterator[Browser]:
    """A window in which nothing went wrong, and that asked nobody but us."""
    _window.size(1400, 900)
    _window.theme("light")
    _window.driver.get("about:blank")
    _window.faults()
    _window.strangers()
    yield _window
    assert _window.strangers() == set()
    _window.driver.get("about:blank")
