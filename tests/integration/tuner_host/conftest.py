"""Starts tuner hosts with a tuner written in the test."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.tuner_host.fake_head import FakeHead

Make = Callable[..., FakeHead]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """``make(source, **config)``: a head whose tuner class ``T`` is in ``source``."""
    heads: list[FakeHead] = []

    def build(source: str, **config: Any) -> FakeHead:
        code = tmp_path / "code"
        code.mkdir(exist_ok=True)
        (code / "my_tuner.py").write_text(textwrap.dedent(source))
        config.setdefault("class_name", "my_tuner:T")
        config.setdefault("code_directory", str(code))
        head = FakeHead(tmp_path / f"experiment{len(heads)}", **config)
        heads.append(head)
        return head

    try:
        yield build
    finally:
        with contextlib.ExitStack() as closing:  # each of them, whatever one says
            for head in heads:
                closing.callback(head.close)
