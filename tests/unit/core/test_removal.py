"""Weights go only when no child on its way needs them."""

from __future__ import annotations

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import TrialState
from tests.support.scene import Scene, of_kind


def announced(scene: Scene, *trials: int) -> tuple[TrialId, ...]:
    actions = scene.say(e.RemovalAnnounced(tuple(TrialId(n) for n in trials)))
    (grant,) = of_kind(actions, a.GrantRemoval)
    return grant.trials


@pytest.mark.parametrize(
    "places, state", [(1, TrialState.QUEUED), (2, TrialState.RUNNING)], ids=str
)
def test_a_parent_stays_while_its_child_waits_or_runs(places: int, state: TrialState) -> None:
    scene = Scene(slots=2, workers=places)
    scene.whole(0)
    scene.say(e.Proposed(TrialId(1), "{}", "t/1"))
    scene.say(e.Proposed(TrialId(2), "{}", "t/2", "t/0"))
    assert scene.trial(2).state is state
    assert announced(scene, 0) == ()


def test_one_that_nobody_needs_goes_and_is_refused_to_later_children() -> None:
    scene = Scene()
    scene.whole(0)
    assert announced(scene, 0) == (0,)
    assert scene.state.removed_weights == {0}


def test_one_that_has_not_ended_stays() -> None:
    scene = Scene()
    scene.say(e.Proposed(TrialId(0), "{}", "t/0"))
    assert announced(scene, 0) == ()
