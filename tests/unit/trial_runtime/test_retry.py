"""Pauses that grow."""

from __future__ import annotations

import pytest

from trial_runtime.retry import growing_pause


@pytest.mark.parametrize(
    "failures, pause_s", [(0, 1.0), (1, 1.0), (2, 2.0), (4, 8.0), (5, 15.0), (10**6, 15.0)]
)
def test_they_double_up_to_the_longest(failures: int, pause_s: float) -> None:
    assert growing_pause(failures, 1.0, 15.0) == pause_s
