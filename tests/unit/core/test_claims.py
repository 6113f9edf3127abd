"""One canonical save path, one trial: what is refused, and whom the refusal names."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import TrialState
from tests.support.scene import Scene, of_kind


@pytest.mark.parametrize(
    "save, restore, sentence",
    [
        ("a/b", None, "save path 'a/b' belongs to trial 0 already"),
        ("a/b/c", None, "save path 'a/b/c' lies inside 'a/b', the save path of trial 0"),
        ("a", None, "save path 'a' holds the save path of trial 0"),
        ("x", "nobody", "restore path 'nobody' is no trial's save path"),
        ("x", "x", "trial 1 would restore from its own save path 'x'"),
        ("x", "x/y", "trial 1 would restore from its own save path 'x'"),
    ],
)
def test_refused(save: str, restore: str | None, sentence: str) -> None:
    scene = Scene(on_tuner_error="continue")
    scene.say(e.Proposed(TrialId(0), "{}", "a/b"))
    actions = scene.say(e.Proposed(TrialId(1), "{}", save, restore))
    (report,) = of_kind(actions, a.ReportTunerError)
    assert report.text.startswith(sentence)
    assert scene.trial(1).state is TrialState.ENDED
    assert scene.state.submitted == 1


@pytest.mark.parametrize("save", ["a/bc", "a/c", "ab", "b"])
def test_neighbours_are_fine(save: str) -> None:
    scene = Scene()
    scene.say(e.Proposed(TrialId(0), "{}", "a/b"))
    scene.say(e.Proposed(TrialId(1), "{}", save))
    assert scene.trial(1).state is TrialState.RUNNING


def test_a_restore_path_inside_a_save_path_names_its_owner_as_parent() -> None:
    scene = Scene()
    scene.whole(0)
    scene.say(e.Proposed(TrialId(1), "{}", "x", "t/0/encoder"))
    assert scene.trial(1).parent == 0


def test_a_read_root_has_no_owner() -> None:
    scene = Scene()
    scene.say(e.Proposed(TrialId(0), "{}", "x", "/pretrained/resnet"))
    assert scene.trial(0).parent is None
    assert scene.trial(0).state is TrialState.RUNNING


def test_a_refused_request_may_try_another_path() -> None:
    scene = Scene(on_tuner_error="retry", slots=3)
    scene.say(e.Proposed(TrialId(0), "{}", "a"))
    actions = scene.say(e.Proposed(TrialId(1), "{}", "a"))
    assert of_kind(actions, a.OpenRequest)
    scene.say(e.Proposed(TrialId(1), "{}", "b"))
    assert scene.state.claims == {"a": 0, "b": 1}


@pytest.mark.parametrize("by", ["hand", "tuner"])
@pytest.mark.parametrize(
    "wrong",
    [{"reads": (("omega", 7),)}, {"restore_path": "nobody"}, {"restore_path": "mine/x"}],
    ids=str,
)
def test_what_is_refused_takes_no_path(wrong: dict[str, Any], by: str) -> None:
    """Mended, it is accepted. Mutation: its own save path is taken by then, by a trial that never
    was one."""
    scene = Scene(slots=4, on_tuner_error="retry")
    (number,) = {min(scene.state.open)} if by == "tuner" else {scene.state.next_id}

    def say(**more: Any) -> list[a.Action]:
        if by == "hand":
            return scene.say(e.TrialSubmitted("{}", "mine", **more))
        return scene.say(e.Proposed(TrialId(number), "{}", "mine", **more))

    for _ in range(2):
        say(**wrong)
        assert scene.trial(number).state is not TrialState.RUNNING
        assert scene.trial(number).save_path is None
        if by == "hand":
            number = scene.state.next_id
    accepted = scene.state.next_id
    out = say()
    number = number if by == "tuner" else accepted
    assert of_kind(out, a.ReportTunerError) == []
    assert scene.trial(number).state is TrialState.RUNNING
    assert scene.trial(number).save_path == "mine"
