"""How many allocations there are: the least always, more while trials wait, fewer when idle."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.platforms.allocations.allocation import Bounds
from dispatcher.platforms.allocations.decide import Adjustment, Seat, decide

ELASTIC = Bounds(least=1, most=3, idle_s=60.0)


def seats(*held: bool, slots: int = 2, **more: float) -> list[Seat]:
    return [
        Seat(f"q-{number}", slots, True, each, **more)  # type: ignore[arg-type]
        for number, each in enumerate(held, 1)
    ]


def test_the_least_are_there_without_any_demand() -> None:
    assert decide(ELASTIC, seats(False, False, False), 0, 0.0) == Adjustment(("q-1",))
    assert decide(ELASTIC, seats(False, True, False), 0, 0.0) == Adjustment(), "whichever it is"


def test_more_are_there_only_for_what_those_that_come_will_not_take() -> None:
    """Mutation: what waits in the queue already is not counted, and each look orders one more."""
    assert decide(ELASTIC, seats(True, False, False), 3, 0.0).submit == ("q-2", "q-3")
    assert decide(ELASTIC, seats(True, False, False), 2, 0.0).submit == ("q-2",)
    coming = [Seat("q-1", 2, True, True, coming=True), *seats(True, False, False)[1:]]
    assert decide(ELASTIC, coming, 2, 0.0).submit == ()
    assert decide(ELASTIC, coming, 3, 0.0).submit == ("q-2",)


def test_never_more_than_the_most_and_nobody_who_is_not_wanted_or_rests() -> None:
    many = [*seats(True, True, True), Seat("q-4", 2, True, False)]
    assert decide(ELASTIC, many, 99, 0.0) == Adjustment()
    assert decide(ELASTIC, [Seat("q-1", 2, False, False)], 99, 0.0) == Adjustment()
    late = [Seat("q-1", 2, True, False, not_before=10.0), Seat("q-2", 2, True, False)]
    assert decide(ELASTIC, late, 0, 9.9).submit == ("q-2",), "another one stands in"
    assert decide(ELASTIC, late[:1], 0, 10.0).submit == ("q-1",)


def test_idle_ones_beyond_the_least_go_the_last_first() -> None:
    idle = seats(True, True, True, idle_since=0.0)
    assert decide(ELASTIC, idle, 0, 59.0) == Adjustment()
    assert decide(ELASTIC, idle, 0, 60.0) == Adjustment((), ("q-3", "q-2"))
    assert decide(ELASTIC, idle, 1, 60.0) == Adjustment(), "something waits that they may take"
    assert decide(Bounds(0, 3), idle, 0, 1e9) == Adjustment(), "no idle end"


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.integers(1, 4))),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 20),
)
def test_it_keeps_its_bounds(
    given_seats: list[tuple[bool, bool, bool, int]], least: int, more: int, demand: int
) -> None:
    bounds = Bounds(least, least + more, 0.0)
    made = [
        Seat(str(n), slots, wanted, held, held and coming, 0.0 if demand == 0 else None)
        for n, (wanted, held, coming, slots) in enumerate(given_seats)
    ]
    choice = decide(bounds, made, demand, 1.0)
    held = {seat.worker for seat in made if seat.held}
    assert held.isdisjoint(choice.submit)
    assert held.issuperset(choice.release)
    after = len(held) + len(choice.submit) - len(choice.release)
    assert after <= max(bounds.most, len(held))
    if choice.release:
        assert after >= least
        assert not choice.submit or len(held) < least
    assert decide(bounds._replace(idle_s=math.inf), made, demand, 1.0).release == ()
