"""Three states to one: what only one side changed is taken, what both changed is decided."""

from __future__ import annotations

import numpy as np
import pytest

from trial_runtime.api_errors import StoreConflict
from trial_runtime.merging import merge


def state(a, b, step=1):
    return {"net": {"a": np.array(a, dtype=np.float32), "b": np.array(b)}, "step": step, "no": [1]}


BASE = state([1, 1], [0, 0])
MINE = state([3, 1], [0, 0], 4)
THEIRS = state([1, 1], [5, 7], 1)
BOTH = state([2, 1], [5, 7], 3)


@pytest.mark.parametrize("rule", ["changed", "mine", "theirs", "mean", "add"])
def test_what_only_one_side_changed_is_taken_whatever_the_rule(rule):
    merged = merge(BASE, MINE, THEIRS, rule)
    assert merged["net"]["a"].tolist() == [3, 1]
    assert merged["net"]["b"].tolist() == [5, 7]
    assert (merged["step"], merged["no"]) == (4, [1])


def test_what_both_changed_is_decided_by_the_rule():
    found = {rule: merge(BASE, MINE, BOTH, rule) for rule in ("mine", "theirs", "mean", "add")}
    a = {rule: each["net"]["a"].tolist() for rule, each in found.items()}
    assert a == {"mine": [3, 1], "theirs": [2, 1], "mean": [2.5, 1], "add": [4, 1]}
    assert {rule: each["step"] for rule, each in found.items()} == {
        "mine": 4,
        "theirs": 3,
        "mean": 3,
        "add": 6,
    }
    assert all(each["net"]["a"].dtype == np.float32 for each in found.values())
    assert all(each["net"]["b"].tolist() == [5, 7] for each in found.values())
    assert MINE["net"]["a"].tolist() == [3, 1], "left as it is"


def test_no_rule_no_answer():
    with pytest.raises(StoreConflict, match=r"both changed net\.a.*'changed'"):
        merge(BASE, MINE, BOTH, "changed")
    with pytest.raises(StoreConflict, match="'add' has no answer to that: both began it") as caught:
        merge(None, {"a": np.zeros(2)}, {"a": np.ones(2)}, "add")  # no change without a base
    assert "'add'" not in caught.value.hint  # which was declared
    assert "merge='theirs'" in caught.value.hint
    with pytest.raises(StoreConflict, match="these are not numbers of one type and shape"):
        merge({"a": np.zeros(2)}, {"a": np.zeros(3)}, {"a": np.ones(2)}, "mean")
    with pytest.raises(StoreConflict):
        merge({"name": "a"}, {"name": "b"}, {"name": "c"}, "mean")


def test_equal_changes_are_one_but_to_who_adds_them_up():
    for rule in ("changed", "mean"):
        assert merge(BASE, MINE, MINE, rule)["net"]["a"].tolist() == [3, 1]
    assert merge(BASE, MINE, MINE, "add")["net"]["a"].tolist() == [5, 1]


def test_a_function_decides_by_name():
    asked = []

    def decide(name, base, mine, theirs):
        asked.append((name, base is None))
        return np.maximum(mine, theirs)

    mine, theirs = {"x": np.ones(1), "y": np.ones(1)}, {"x": np.full(1, 2.0), "y": np.zeros(1)}
    merged = merge({"x": np.zeros(1)}, mine, theirs, decide)
    assert (merged["x"].tolist(), merged["y"].tolist()) == ([2.0], [1.0])
    assert asked == [("x", False), ("y", True)]


def test_what_is_new_or_gone_on_one_side():
    merged = merge({"a": 1, "b": 2}, {"a": 1, "b": 2, "mine": 3}, {"a": 1, "theirs": 4}, "changed")
    assert merged == {"a": 1, "mine": 3, "theirs": 4}
