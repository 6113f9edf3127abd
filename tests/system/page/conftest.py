"""The page in a real Chromium, over made-up searches of any size."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.support.made_search import MadeSearch

#: Names the folder in which pictures are kept, one of each page and size; else it is this one.
PICTURES, KEPT = "BEQUEATH_PICTURES", Path(__file__).parents[3] / ".pictures"


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
    folder = Path(os.environ.get(PICTURES) or KEPT)
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
