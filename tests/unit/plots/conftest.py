"""Experiments whose results are known functions of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dispatcher.queries import ExperimentReader
from tests.support.made_store import Told, made_store

Open = Callable[..., ExperimentReader]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Make a store of trials, and open it."""
    with ExitStack() as stack:

        def make(trials: Iterable[Told], **config: Any) -> ExperimentReader:
            folder = made_store(tmp_path / str(len(list(tmp_path.iterdir()))), trials, **config)
            return stack.enter_context(ExperimentReader.open(folder))

        yield make
