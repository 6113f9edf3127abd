"""Steps of the wall clock reach no deadline."""

from __future__ import annotations

import pytest

from dispatcher.head.clock import SteadyClock

HOUR = 3600.0


class Times:
    """A machine's two clocks."""

    wall = 1_000_000.0
    monotonic = 50.0

    def clock(self, not_before: float = 0.0) -> SteadyClock:
        return SteadyClock(not_before, lambda: self.wall, lambda: self.monotonic)


@pytest.mark.parametrize("step", [-5 * HOUR, 5 * HOUR])
def test_a_step_of_the_wall_clock_is_not_seen(step: float) -> None:
    times = Times()
    clock = times.clock()
    times.wall += step
    times.monotonic += 2.0
    assert clock() == pytest.approx(1_000_002.0)


def test_a_head_on_a_machine_that_was_set_back_goes_on_from_the_journals_newest_moment() -> None:
    times = Times()
    clock = times.clock(not_before=times.wall + 5 * HOUR)
    assert clock() == pytest.approx(times.wall + 5 * HOUR)
    times.monotonic += 60.0
    assert clock() == pytest.approx(times.wall + 5 * HOUR + 60.0), "a minute is a minute"
