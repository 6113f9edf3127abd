"""Shared stores: one line of versions, whoever offers in whichever order, said once or often."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.core.stores import BadPins, read_pins, read_version
from dispatcher.state_codec import decode_state, encode_state
from tests.support.scene import Scene, of_kind


def scene_with(running: int) -> Scene:
    scene = Scene(slots=running + 1, lookahead=4)  # one more request is open
    for trial in range(running):
        scene.propose(trial, saves=False)
        scene.started(trial)
    return scene


def offer(scene: Scene, trial: int, base: int, word: str = "a", **more: Any) -> a.AnswerOffer:
    told = {"path": f"omega/{trial}.1-{word}", "digest": f"{trial}{word}", "store": "omega", **more}
    event = e.VersionOffered(TrialId(trial), 1, 5, base=base, nbytes=10, **told)
    (answer,) = of_kind(scene.say(event), a.AnswerOffer)
    assert (answer.trial, answer.attempt, answer.worker) == (trial, 1, "local")
    assert answer.digest == event.digest
    return answer


def test_who_made_it_from_the_newest_comes_in_and_the_other_hears_of_that() -> None:
    scene = scene_with(2)
    first = offer(scene, 0, base=0)
    assert first.accepted
    assert first.newest is not None
    assert first.newest.number == 1
    second = offer(scene, 1, base=0)
    assert not second.accepted
    assert second.newest == first.newest
    again = offer(scene, 1, base=1, word="b")
    assert again.accepted
    assert again.newest is not None
    assert again.newest.number == 2


def test_an_answer_that_was_lost_is_given_again_and_nothing_is_entered_twice() -> None:
    scene = scene_with(2)
    first = offer(scene, 0, base=0)
    offer(scene, 1, base=1)
    assert offer(scene, 0, base=0) == first
    assert not scene.counted
    assert len(scene.state.stores["omega"]) == 2
    scene.assert_replays()


def test_the_tuner_hears_of_versions_and_a_new_host_of_all() -> None:
    scene = scene_with(1)
    event = e.VersionOffered(TrialId(0), 1, 5, "omega", 0, "omega/0.1-a", "d", 10)
    assert of_kind(scene.say(event), a.TellVersion) == [a.TellVersion("omega", 1, TrialId(0))]
    assert of_kind(scene.say(event), a.TellVersion) == [], "once"
    scene.say(e.TunerHostLost("gone"))
    assert scene.say(e.TunerHostReady())[0] == a.TellVersion("omega", 1)


def test_a_reader_starts_with_the_version_it_pinned_whatever_came_since() -> None:
    scene = scene_with(2)
    pinned = offer(scene, 0, base=0).newest
    offer(scene, 0, base=1, word="b")
    out = scene.say(e.Proposed(TrialId(2), "{}", reads=(("omega", 1),)))
    (start,) = of_kind(out, a.StartAttempt)
    assert (start.trial, start.versions) == (2, (pinned,))
    scene.started(2)
    scene.exit(2)
    scene.deliver(2)
    assert scene.trial(2).reads == ()


def test_versions_that_are_not_are_refused_by_name() -> None:
    scene = scene_with(1)
    out = scene.say(e.Proposed(TrialId(1), "{}", reads=(("omega", 1),)))
    (told,) = of_kind(out, a.ReportTunerError)
    assert "'omega' has no version 1: it has none yet" in told.text


def test_what_is_no_version_anywhere_is_refused_for_good() -> None:
    scene = scene_with(1)
    for more in (
        {"store": "../x", "path": "../x/0.1-a"},
        {"path": "omega/1.1-a"},
        {"path": "omega/0.1-a/b"},
        {"path": "other/0.1-a"},
        {"base": 3},
    ):
        answer = offer(scene, 0, **{"base": 0, **more})
        assert answer.refusal
        assert (answer.accepted, answer.newest) == (False, None)
    assert scene.state.stores == {}


def test_a_version_stays_when_its_trial_fails_and_late_words_count_no_more() -> None:
    scene = scene_with(1)
    offer(scene, 0, base=0)
    scene.exit(0, EndReason.SIGNALLED)
    late = e.VersionOffered(TrialId(0), 1, 6, "omega", 1, "omega/0.1-b", "e", 10)
    assert scene.say(late) == []
    assert not scene.counted
    assert [each.digest for each in scene.state.stores["omega"]] == ["0a"]


def test_a_superseded_attempt_publishes_nothing() -> None:
    scene = Scene(slots=1, lookahead=1, trial_retries=1)
    scene.propose(0, saves=False)
    scene.started(0)
    scene.exit(0, EndReason.FAILED)
    scene.tick()
    scene.started(0, attempt=2)
    late = e.VersionOffered(TrialId(0), 1, 6, "omega", 0, "omega/0.1-b", "e", 10)
    assert scene.say(late) == []
    assert scene.state.stores == {}


def test_a_compacted_journal_begins_with_the_stores() -> None:
    scene = scene_with(1)
    offer(scene, 0, base=0)
    scene.say(e.Proposed(TrialId(1), "{}", reads=(("omega", 1),)))
    scene.state.dirty.clear()
    assert decode_state(encode_state(scene.state)) == scene.state


def test_pins_that_are_none() -> None:
    assert read_pins({"x": 1}) == ()
    assert read_pins({"shared_stores": {"b": 2, "a": 1}}) == (("a", 1), ("b", 2))
    for value in (3, {"a": 0}, {"a": True}, {"../a": 1}, {"a": "1"}):
        try:
            read_pins({"shared_stores": value})
        except BadPins:
            continue
        raise AssertionError(f"{value} was taken")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40))
def test_any_interleaving_is_one_line_in_which_each_saw_the_one_before(
    turns: list[tuple[int, bool]],
) -> None:
    """Four trials add their numbers to what they read, by compare-and-swap with retries, and some
    answers are lost. Whatever the order: no number of an accepted offer is missing (a lost update
    is what compare-and-swap must make impossible), and a trial never counts twice."""
    scene = scene_with(4)
    content: dict[str, frozenset[tuple[int, int]]] = {}
    seen = dict.fromkeys(range(4), 0)  # the version that each stands at
    done = dict.fromkeys(range(4), 0)  # how often each was accepted, as it knows
    asked: dict[int, tuple[int, str]] = {}  # said, and not heard of
    serial = 0
    for trial, heard in turns:
        if trial not in asked:
            serial += 1
            word, base = f"{serial:x}", seen[trial]
            asked[trial] = (base, word)
            below = scene.state.stores["omega"][base - 1].digest if base else None
            known = content[below] if below is not None else frozenset()
            content[f"{trial}{word}"] = known | {(trial, done[trial])}
        base, word = asked[trial]
        answer = offer(scene, trial, base, word)
        if not heard:
            continue  # it is asked again
        del asked[trial]
        assert answer.newest is not None
        seen[trial] = answer.newest.number
        done[trial] += answer.accepted
    versions = scene.state.stores.get("omega", [])
    assert len({version.path for version in versions}) == len(versions)
    for before, after in pairwise(versions):
        assert len(content[after.digest] - content[before.digest]) == 1
        assert content[before.digest] < content[after.digest]
    accepted = sum(done.values())
    assert accepted <= len(versions) <= accepted + len(asked)
    core.check(scene.state)
    scene.assert_replays()


def test_a_trial_may_start_from_a_version_as_from_a_parent() -> None:
    """It pins it, needs no parent, and is told where it lies and by which digest."""
    scene = scene_with(1)
    made = offer(scene, 0, base=0).newest
    assert made is not None
    named = ".stores/omega/1"
    assert read_version(named) == ("omega", 1)
    assert read_version(f".stores/omega/{'0' * 5000}1") == ("omega", 1), "int() takes 4,300 digits"
    event = e.Proposed(TrialId(1), "{}", "t/1", named, reads=(("omega", 1),))
    (start,) = of_kind(scene.say(event), a.StartAttempt)
    assert (start.restore_path, start.restore_digest) == (f".stores/{made.path}", made.digest)
    assert start.restore_kind == "bequeath"
    assert scene.trial(1).parent is None
    scene.assert_replays()


def test_restore_paths_that_name_no_version() -> None:
    assert read_version("trials/3") is None
    assert read_version("/pretrained") is None
    for below in (
        "",
        "/omega",
        "/omega/",
        "/omega/x",
        "/omega/0",
        "/../1",
        "/omega/1/2",
        "/omega/-1",
    ):
        with pytest.raises(BadPins, match="names no version of a shared store"):
            read_version(f".stores{below}")
