"""When allocations are cancelled, again, and alone."""

from __future__ import annotations

from dispatcher.platforms.allocations.cancelling import (
    CANCEL_AGAIN_S,
    LONGEST_PAUSE_S,
    Cancelling,
)


def test_an_order_that_is_repeated_adds_nothing_to_the_grace() -> None:
    cancelling = Cancelling()
    wanted = {"a": 25.0, "b": 25.0, "c": 0.0}
    assert cancelling.due(wanted, 100.0) == [(25.0, ["a", "b"]), (0.0, ["c"])]
    cancelling.done(["a", "b", "c"], 100.0)
    assert cancelling.due(wanted, 100.0 + CANCEL_AGAIN_S - 1) == []
    assert cancelling.due(wanted, 120.0) == [(5.0, ["a", "b"]), (0.0, ["c"])]
    cancelling.done(["a", "b", "c"], 120.0)
    assert cancelling.due({"a": 0.0}, 120.0) == [(0.0, ["a"])], "it is in a hurry now"
    cancelling.done(["a"], 120.0)
    assert cancelling.due({"b": 3.0}, 120.0) == [(3.0, ["b"])], "a new one of this name"


def test_after_a_failure_each_is_tried_alone() -> None:
    """Mutation: one that cannot be cancelled keeps those beside it."""
    cancelling = Cancelling()
    wanted = dict.fromkeys("abc", 0.0)
    assert cancelling.due(wanted, 0.0) == [(0.0, ["a", "b", "c"])]
    assert cancelling.failed(["a", "b", "c"], "not yours", 0.0)
    assert cancelling.due(wanted, 0.0) == [(0.0, ["a"]), (0.0, ["b"]), (0.0, ["c"])]
    assert not cancelling.failed(["a"], "not yours", 0.0), "that was known"
    cancelling.done(["b", "c"], 0.0)
    assert (cancelling.trouble("a"), cancelling.trouble("b")) == ("not yours", "")
    now = 0.0
    for _ in range(12):
        now += LONGEST_PAUSE_S
        assert cancelling.due({"a": 0.0}, now) == [(0.0, ["a"])]
        cancelling.failed(["a"], "not yours", now)
    assert cancelling.due({"a": 0.0}, now + LONGEST_PAUSE_S - 1) == []
    cancelling.hurry()
    assert cancelling.due({"a": 0.0}, now) == [(0.0, ["a"])], "somebody waits for it"
