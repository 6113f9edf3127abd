"""One search for all tests of this folder: each gives its code the demo that it needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.processes import end_processes_of
from tests.support.trained import USUAL, TrainedSearch


@pytest.fixture(scope="module")
def one_search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainedSearch]:
    search = TrainedSearch(tmp_path_factory.mktemp("trained"))
    yield search
    end_processes_of(search.place)


@pytest.fixture
def search(one_search: TrainedSearch) -> TrainedSearch:
    """A search that has ended, with a demo that works."""
    one_search.offer(USUAL)
    return one_search
