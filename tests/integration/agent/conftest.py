from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agent.fake_head import FakeHead


@pytest.fixture
def head_with() -> Iterator[Callable[..., FakeHead]]:
    """Makes heads with an agent that has said hello; sockets need a short folder."""
    heads: list[FakeHead] = []
    with tempfile.TemporaryDirectory(prefix="bq-") as folder:

        def make(**changes: Any) -> FakeHead:
            head = FakeHead(Path(folder).resolve(), **changes)
            heads.append(head)
            head.launch()
            head.until(lambda: head.hellos, "hello")
            return head

        try:
            yield make
        finally:
            with contextlib.ExitStack() as closing:  # each of them, whatever one says
                for head in heads:
                    closing.callback(head.close)
