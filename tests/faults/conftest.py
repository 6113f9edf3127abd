"""Experiments that leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.experiments import Experiment


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Experiment]]:
    """Make an experiment; what is left of it is ended with the test."""
    made: list[Experiment] = []

    def one(**keys: Any) -> Experiment:
        made.append(Experiment(tmp_path, **keys))
        return made[-1]

    try:
        yield one
    finally:
        for each in made:
            each.close()
