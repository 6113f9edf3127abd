"""Pauses that grow."""

from __future__ import annotations

import pytest

from trial_runtime.retry import Retry, growing_pause


@pytest.mark.parametrize(
    "failures, pause_s", [(0, 1.0), (1, 1.0), (2, 2.0), (4, 8.0), (5, 15.0), (10**6, 15.0)]
)
def test_they_double_up_to_the_longest(failures: int, pause_s: float) -> None:
    assert growing_pause(failures, 1.0, 15.0) == pause_s


def test_tries_pause_longer_and_longer_and_the_last_one_ends_at_the_bound() -> None:
    """Mutation: the bound is counted from each pause, or the last try comes after it."""
    pauses: list[float] = []
    tries = Retry(1.0, 4.0, clock=lambda: 100.0 + sum(pauses), sleep=pauses.append)
    while tries.pause(10.0):
        pass
    assert pauses == [1.0, 2.0, 4.0, 3.0]
    assert tries.spent_s == 10.0


def test_work_that_takes_longer_than_the_bound_is_not_done_again() -> None:
    pauses: list[float] = []
    now = [0.0]
    tries = Retry(1.0, 4.0, clock=lambda: now[0], sleep=pauses.append)
    now[0] = 11.0
    assert not tries.pause(10.0)
    assert tries.pause(15.0), "another error may be worth more patience"
    assert pauses == [1.0]
