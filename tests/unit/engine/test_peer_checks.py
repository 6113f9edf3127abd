"""All peers are looked after twice a second, many of them in parts."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest

from dispatcher.peer_checks import CHECK_EVERY_S, PART, PeerChecks


class Clock:
    """Seconds that a test lets pass."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def rounds(backends: dict[str, Any], clock: Clock, seconds: float) -> list[list[str]]:
    checks, parts = PeerChecks(backends, clock), []
    while clock.now < seconds:
        if checks.wait_s() <= 0:
            parts.append([name for name, _ in checks.part()])
        clock.now += 0.001
    return parts


def some(count: int) -> dict[str, Any]:
    return {f"w{number}": cast("Any", object()) for number in range(count)}


@pytest.mark.parametrize("count", [1, PART, PART + 1, 100, 1000])
def test_everyone_is_looked_after_twice_a_second_a_few_at_a_time(count: int) -> None:
    """Mutations: all in one part; a part is left out; the pause between parts is that of rounds."""
    parts = rounds(some(count), Clock(), 4 * CHECK_EVERY_S)
    assert max(len(part) for part in parts) <= PART
    looks = Counter(name for part in parts for name in part)
    assert len(looks) == count
    # A millisecond of this clock is lost with each part.
    assert all(3 <= each <= 4 for each in looks.values())


def test_a_round_begins_when_the_one_before_has_ended() -> None:
    checks = PeerChecks(some(2 * PART), Clock())
    assert checks.begins
    checks.part()
    assert not checks.begins
    checks.part()
    assert checks.begins


def test_who_leaves_within_a_round_is_not_looked_after_and_who_comes_is_in_the_next() -> None:
    """Mutation: the names of a round are taken for backends that are there."""
    backends = some(PART + 1)
    checks = PeerChecks(backends, Clock())
    first = {name for name, _ in checks.part()}
    gone = next(name for name in backends if name not in first)
    del backends[gone]
    backends["new"] = cast("Any", object())
    assert gone not in {name for name, _ in checks.part()}
    assert "new" in {name for _ in range(2) for name, _ in checks.part()}


def test_without_backends_the_tuner_is_looked_after_all_the_same() -> None:
    clock = Clock()
    assert len(rounds({}, clock, 2.0)) == 4
