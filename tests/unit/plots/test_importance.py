"""Importance finds what results depend on, says where it cannot, and is the same each time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from dispatcher.plots.choosing import choose
from dispatcher.plots.importance import LEAST, MOST_JUDGED, importance
from dispatcher.plots.sampling import sample_of
from tests.support.made_store import Told
from tests.unit.plots.conftest import Open

pytest.importorskip("sklearn")


def searched(many: int, seed: int = 1, useless: int = 3) -> Iterator[Told]:
    """The result is 10 * x + 3 * (a kind); nothing else matters."""
    draw = random.Random(seed)
    for _ in range(many):
        own: dict[str, Any] = {f"useless{at}": draw.random() for at in range(useless)}
        own |= {"x": draw.random(), "kind": draw.choice(["a", "b"]), "same": 7}
        yield own, 10 * own["x"] + 3 * (own["kind"] == "b"), None


def test_the_parameters_that_matter_come_first(opened: Open) -> None:
    found = importance(opened(searched(150)))
    assert [one.name for one in found.judged[:2]] == ["x", "kind"]
    by_name = {one.name: one.importance for one in found.judged}
    assert by_name["x"] > 3 * by_name["kind"] > 0.2
    assert all(abs(by_name[f"useless{at}"]) < 0.03 for at in range(3))
    assert "same" not in by_name
    assert found.explained is not None
    assert found.explained > 0.9
    assert found.reliable
    assert found.notes == []
    assert found.inherited is None


def test_the_same_trials_and_seed_give_the_same_answer(opened: Open) -> None:
    reader = opened(searched(60))
    first, again, other = (importance(reader, seed=seed) for seed in (5, 5, 6))
    assert msgspec.json.encode(first) == msgspec.json.encode(again)
    assert first.judged != other.judged


def test_noise_is_called_noise(opened: Open) -> None:
    draw = random.Random(2)
    found = importance(
        opened(({"a": draw.random(), "b": draw.random()}, draw.random(), None) for _ in range(80))
    )
    assert not found.reliable
    assert any("the order may be chance" in note for note in found.notes)


def test_what_children_owe_to_their_parents_is_apart(opened: Open) -> None:
    """Mutation: without the parent's result, a parameter that only drifts along seems important."""
    draw = random.Random(3)

    def drifting() -> Iterator[Told]:
        value = 0.0
        for number in range(120):
            value += draw.uniform(0.0, 1.0)
            yield (
                {"drift": value + draw.gauss(0, 8), "b": draw.random()},
                value,
                number - 1 if number else None,
            )

    found = importance(opened(drifting()))
    assert found.inherited is not None
    assert found.inherited.importance > 5 * max(one.importance for one in found.judged)


def test_parameters_that_move_together_are_named(opened: Open) -> None:
    draw = random.Random(4)
    rows = [draw.random() for _ in range(60)]
    trials = [({"a": x, "b": 2 * x + 1, "c": draw.random()}, x, None) for x in rows]
    found = importance(opened(trials))
    assert found.alike == [("a", "b")]
    assert any("rise and fall together" in note for note in found.notes)


def test_of_hundreds_of_parameters_the_rest_is_named(opened: Open) -> None:
    reader = opened(searched(80, useless=150))
    found = importance(reader)
    assert len(found.judged) == MOST_JUDGED
    assert found.judged[0].name == "x"
    assert len(found.rest) == 152 - MOST_JUDGED
    assert {one.name for one in found.judged} | set(found.rest) == set(found.parameters)
    chosen = choose(sample_of(reader), (), 5)
    assert (chosen.by, chosen.names[0], len(chosen.rest)) == ("importance", "x", 147)


@pytest.mark.parametrize(
    "trials,why",
    [
        ([], "0 results are too few"),
        ([({"x": 1}, 0.5, None)], "1 results are too few"),
        ([({"x": at}, 0.5, None) for at in range(LEAST)], "all results are the same"),
        ([({"x": 1}, at, None) for at in range(LEAST)], "trials differ in no parameter"),
    ],
)
def test_too_little_is_said(opened: Open, trials: list[Told], why: str) -> None:
    found = importance(opened(trials))
    assert why in found.notes[-1]
    assert (found.explained, found.judged, found.reliable) == (None, [], False)


def test_one_result_that_diverged_is_not_all_of_the_variance(opened: Open) -> None:
    trials = [*searched(80), ({"x": 0.5, "kind": "a"}, 1e30, None)]
    found = importance(opened(trials))
    assert found.judged[0].name == "x"
    assert found.reliable


def test_conditional_parameters_count(opened: Open) -> None:
    draw = random.Random(6)
    trials: list[Told] = []
    for at in range(90):
        deep = draw.random()
        own = {"b": draw.random()} | ({"block": {"deep": deep}} if at % 2 else {})
        trials.append((own, 5 + deep if at % 2 else 1.0, None))
    assert importance(opened(trials)).judged[0].name == "block.deep"


def test_without_the_library_correlation_chooses(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    reader = opened(searched(150, useless=8))
    chosen = choose(sample_of(reader), (), 2)
    assert (chosen.names, chosen.by) == (["x", "kind"], "correlation")
    with pytest.raises(Exception, match="needs scikit-learn"):
        importance(reader)
