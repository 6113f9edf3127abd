from __future__ import annotations

from trial_runtime.agent.trials.bounds import BURST_S, FLOOD_S, Allowance, metric_fault
from trial_runtime.refusals import MOST_REASONS, Refusals


def test_it_is_said_the_first_second_fourth_time() -> None:
    refusals = Refusals()
    said = [number for number in range(1, 20) if refusals.count("x")]
    assert said == [1, 2, 4, 8, 16]
    assert refusals.counts == {"x": 19}


def test_a_peer_cannot_make_up_reasons_without_end() -> None:
    refusals = Refusals()
    for number in range(1000):
        refusals.count(f"reason {number}")
    assert len(refusals.counts) <= MOST_REASONS + 1
    assert refusals.total == 1000


def test_an_allowance_is_spent_and_earned() -> None:
    allowance = Allowance(10.0, 0.0)
    allowance.spend(10 * BURST_S, 0.0)
    assert allowance.debt_s() == 0
    allowance.spend(5, 0.0)
    assert allowance.debt_s() == 0.5
    allowance.spend(0, 1.0)
    assert allowance.debt_s() == 0
    allowance.spend(0, 1e9)  # time makes nobody rich
    allowance.spend(10 * BURST_S + 10 * FLOOD_S, 1e9)
    assert not allowance.flooded
    allowance.spend(1, 1e9)
    assert allowance.flooded


def test_metrics_that_nobody_could_hold() -> None:
    for good in ("1", "-0.5", "1e308", '{"default":1,"loss":[1,{"x":null}]}'):
        assert metric_fault(good, 1000) == ""
    for bad in (
        "", "nan", "Infinity", "1e999", "true", "null", '"1"', "[1]", "{}", '{"default":"1"}',
        "9" * 30, "[" * 900, '{"default":1,"x":' + "[" * 12 + "]" * 12 + "}",
        '{"default":1,"x":99999999999999999999}', "1 2", "1" * 1001, "é" * 600,
    ):  # fmt: skip
        assert metric_fault(bad, 1000), bad
