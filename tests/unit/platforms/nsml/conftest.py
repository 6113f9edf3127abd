"""A service of ours, and orders for its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from tests.support.services.nsml import NSML, Nsml
from tests.support.services.played import Orders, whole_section


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nsml]:
    monkeypatch.setattr("dispatcher.http_services.patience.FIRST_S", 0.0)
    with NSML.serving(tmp_path, 4) as service:
        yield service


@pytest.fixture
def make(served: Nsml, tmp_path: Path) -> Callable[..., Orders]:
    return lambda **keys: Orders(whole_section(NSML, served, tmp_path, **keys), tmp_path)


@pytest.fixture
def orders(make: Callable[..., Orders]) -> Orders:
    return make()


@pytest.fixture
def allocator(orders: Orders) -> Iterator[HttpJobsAllocator]:
    made = orders.allocator()
    yield made
    made.close()
