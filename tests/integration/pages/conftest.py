"""A reader of the pages, in a folder of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pages import Reader
from tests.support.processes import end_processes_of


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    one = Reader(tmp_path)
    yield one
    if one.home.is_dir():
        for folder in one.home.iterdir():
            end_processes_of(folder)
