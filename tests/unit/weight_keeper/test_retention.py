"""What may go: never what anybody alive needs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.errors import UserError
from dispatcher.weight_keeper import Keep, Need, Policy, TrialView, decide


def _view(
    id: int, parent: int | None = None, value: float | None = None, live: bool = False
) -> TrialView:
    return TrialView(id, live, parent, f"t/{id}", value)


#: 0 → 1 → 2 → 3 (live), 0 → 4, 5 (best) → 6
FAMILY = [
    _view(0, value=0.1),
    _view(1, 0, 0.2),
    _view(2, 1, 0.3),
    _view(3, 2, live=True),
    _view(4, 0, 0.4),
    _view(5, value=0.9),
    _view(6, 5, 0.5),
]


def test_all_keeps_all() -> None:
    assert decide(FAMILY, Policy()).dropped == ()


def test_best() -> None:
    decision = decide(FAMILY, Policy(Keep.BEST, 2))
    assert decision.dropped == (0, 1, 4)
    assert decision.kept == {
        3: Need.LIVE, 2: Need.CHILD, 5: Need.BEST, 6: Need.POLICY,
    }  # fmt: skip
    assert decide(FAMILY, Policy(Keep.BEST, 1), maximize=False).dropped == (1, 4, 5, 6)


def test_ancestors_of_live() -> None:
    decision = decide(FAMILY, Policy(Keep.ANCESTORS_OF_LIVE))
    assert decision.dropped == (4, 6)
    assert decision.kept[0] is Need.POLICY


def test_when_nothing_lives_the_best_stays() -> None:
    over = [_view(t.id, t.parent, t.value) for t in FAMILY]
    assert decide(over, Policy(Keep.ANCESTORS_OF_LIVE)).kept == {5: Need.BEST}


def test_last_generations_count_from_the_newest() -> None:
    assert decide(FAMILY, Policy(Keep.LAST_GENERATIONS, 2)).dropped == (0, 1, 4, 6)
    assert decide(FAMILY, Policy(Keep.LAST_GENERATIONS, 9)).dropped == ()


@pytest.mark.parametrize("count, dropped", [(1, (0, 1, 2)), (2, (0, 1)), (3, (0,)), (4, ())])
def test_just_so_many_generations_stay(count: int, dropped: tuple[int, ...]) -> None:
    """Nothing else keeps any of them. Mutation: with two and more one less is kept."""
    line = [_view(0), _view(1, 0), _view(2, 1), _view(3, 2)]
    assert decide(line, Policy(Keep.LAST_GENERATIONS, count)).dropped == dropped


def test_a_parent_may_have_been_asked_for_after_its_child() -> None:
    trials = [_view(0, 1), _view(1, 2), _view(2), _view(3, value=1.0)]
    assert decide(trials, Policy(Keep.LAST_GENERATIONS, 1)).dropped == (1, 2)


def test_pins_and_what_open_requests_wait_for() -> None:
    decision = decide(FAMILY, Policy(Keep.BEST, 1), pins=[0], awaited=[4, 77])
    assert decision.dropped == (1, 6)
    assert (decision.kept[0], decision.kept[4]) == (Need.PINNED, Need.AWAITED)


def test_open_requests_have_no_weights_and_no_generation() -> None:
    request = TrialView(9, live=True, request=True)
    assert 9 not in decide([*FAMILY, request], Policy(Keep.BEST, 1)).kept


def test_the_words_of_a_file() -> None:
    assert Policy.of("best", 5) == Policy(Keep.BEST, 5)
    assert Policy.of("all") == Policy()
    with pytest.raises(UserError, match="needs a count"):
        Policy.of("last-generations")
    with pytest.raises(UserError, match="no retention policy 'some'"):
        Policy.of("some")


@st.composite
def _forests(draw: st.DrawFn) -> list[TrialView]:
    count = draw(st.integers(1, 25))
    order = draw(st.permutations(range(count)))
    trials = []
    for place, trial in enumerate(order):
        parent = draw(st.none() | st.sampled_from(order[:place])) if place else None
        trials.append(
            TrialView(
                id=trial,
                live=draw(st.booleans()),
                parent=parent,
                save_path=draw(st.sampled_from([None, f"t/{trial}", f"t/{trial}"])),
                value=draw(st.none() | st.sampled_from([0.0, 0.5, 1.0])),
                committed=draw(st.booleans()),
            )
        )
    return trials


_POLICIES = st.builds(Policy, st.sampled_from(list(Keep)), st.integers(1, 5))
_IDS = st.sets(st.integers(0, 24), max_size=4)


@given(_forests(), _POLICIES, _IDS, _IDS, st.booleans())
def test_nothing_that_is_needed_goes(
    trials: list[TrialView], policy: Policy, pins: set[int], awaited: set[int], up: bool
) -> None:
    decision = decide(trials, policy, maximize=up, pins=pins, awaited=awaited)
    dropped = set(decision.dropped)
    by_id = {t.id: t for t in trials}

    assert not dropped & (pins | awaited)
    for trial in trials:
        if trial.live:
            assert trial.id not in dropped
            assert trial.parent not in dropped
    if policy.keep is Keep.ANCESTORS_OF_LIVE:
        for trial in trials:
            step = trial.id if trial.live else None
            while step is not None:
                assert step not in dropped
                step = by_id[step].parent
    values = [t for t in trials if t.value is not None and t.committed and t.save_path]
    if values:
        top = (max if up else min)(t.value for t in values if t.value is not None)
        assert any(t.value == top and t.id not in dropped for t in values)
    if policy.keep is Keep.ALL:
        assert not dropped

    with_weights = {t.id for t in trials if t.save_path is not None}
    assert dropped | set(decision.kept) == with_weights
    assert not dropped & set(decision.kept)


@given(_forests(), _POLICIES, _IDS, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_a_pin_only_keeps(
    trials: list[TrialView], policy: Policy, pins: set[int], chance: random.Random
) -> None:
    plain = decide(trials, policy)
    shuffled = list(trials)
    chance.shuffle(shuffled)
    assert decide(shuffled, policy) == plain
    assert set(decide(trials, policy, pins=pins).dropped) == set(plain.dropped) - pins
