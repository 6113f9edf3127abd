"""Leases count what was listened to."""

from __future__ import annotations

from trial_runtime.silence import Silence


class Clock:
    """Monotonic seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_silence_grows_while_somebody_listens() -> None:
    clock = Clock()
    silence = Silence(1.0, clock)
    for _ in range(10):
        clock.now += 0.5
        silence.look()
    assert silence.seconds == 5.0
    silence.heard()
    assert silence.seconds == 0.0
    clock.now += 0.25
    assert silence.seconds == 0.25
    assert silence.look() == 0.25


def test_a_pause_of_our_own_counts_as_one_step() -> None:
    """Mutation: the whole of it counts."""
    clock = Clock()
    silence = Silence(1.0, clock)
    clock.now += 3600.0
    assert silence.seconds == 1.0
    assert silence.look() == 1.0
    clock.now += 0.5
    assert silence.look() == 1.5
