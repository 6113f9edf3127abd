"""A seed says all that is meant to be done."""

from __future__ import annotations

from itertools import islice

from dispatcher.chaos.schedule import Deed, Kind, schedule


def test_a_seed_is_one_schedule() -> None:
    assert list(islice(schedule(5, 1.0), 50)) == list(islice(schedule(5, 1.0), 50))
    assert list(islice(schedule(5, 1.0), 50)) != list(islice(schedule(6, 1.0), 50))


def test_everything_is_done_to_everybody() -> None:
    acts = list(islice(schedule(1, 0.5), 500))
    assert {(act.kind, act.deed) for act in acts} == {(k, d) for k in Kind for d in Deed}
    assert {act.for_s for act in acts if act.deed is Deed.KILL} == {0.0}
    assert all(0.0 < act.for_s <= 3.0 for act in acts if act.deed is not Deed.KILL)
    assert all(0.0 <= act.draw < 1.0 for act in acts)


def test_waits_have_the_mean_that_is_asked_for_and_a_bound() -> None:
    waits = [act.wait_s for act in islice(schedule(2, 0.5), 2000)]
    assert 0.4 < sum(waits) / len(waits) < 0.6
    assert max(waits) <= 2.0
