"""The rate of trials and the time that is left: of the last while, and None where nobody knows."""

from __future__ import annotations

import pytest

from dispatcher.queries import rate_of, time_left


def test_the_rate_is_that_of_the_last_while() -> None:
    assert rate_of((), 0.0) is None
    assert rate_of((10.0,), 20.0) is None  # too few to judge by
    assert rate_of((10.0, 10.0), 10.0) is None
    assert rate_of((40.0, 30.0, 20.0), 40.0) == pytest.approx(0.1)
    assert rate_of((40.0, 30.0, 20.0), 60.0) == pytest.approx(0.05)  # it falls while nothing ends
    assert rate_of((1000.0, 990.0, 1.0), 1000.0) == pytest.approx(0.1)  # what is old is left out
    assert rate_of((40.0, 30.0, 20.0), 5000.0) is None


def test_the_first_limit_counts() -> None:
    assert time_left(2.0, trials=30) == pytest.approx(15.0)
    assert time_left(2.0, trials=30, duration_s=4.0) == pytest.approx(4.0)
    assert time_left(None, trials=30) is None
    assert time_left(None, trials=30, duration_s=4.0) == pytest.approx(4.0)
    assert time_left(2.0, trials=None) is None
    assert time_left(2.0, trials=-3, duration_s=-1.0) == 0.0
    assert time_left(2.0, trials=30, stands=True) is None
