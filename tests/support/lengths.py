"""How much of what could go on for ever is done: at each landing, or with ``EXTENDED=1``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

#: Whether all is done that the tests can do (``make test EXTENDED=1``).
EXTENDED = os.environ.get("BEQUEATH_TESTS") == "all"


def some_of(number: int) -> int:
    """Return how many of so many examples are tried: all of them, or a third and at least one."""
    return number if EXTENDED else max(1, number // 3)


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Return values for ``parametrize``, of which the first so many run at each landing."""
    return [_param(one, index < count) for index, one in enumerate(values)]


def every(step: int, values: Iterable[Any]) -> list[Any]:
    """Return values for ``parametrize``, of which each such one runs at each landing."""
    return [_param(one, index % step == 0) for index, one in enumerate(values)]


def _param(value: Any, at_each_landing: bool) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=() if at_each_landing else pytest.mark.extended)
