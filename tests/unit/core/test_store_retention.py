"""Which versions of a shared store may go: none that somebody pinned, was told of, or may pin."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core import stores
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.core.stores import there
from tests.support.scene import Scene, of_kind


def scene_of(running: int, keep: int = 2, **more: Any) -> Scene:
    scene = Scene(slots=running, lookahead=2, keep_versions=keep, **more)
    for trial in range(running):
        scene.propose(trial, saves=False)
        scene.started(trial)
    return scene


def publish(
    scene: Scene, trial: int, base: int, store: str = "omega", attempt: int = 1
) -> list[a.Action]:
    word = f"{base:x}"
    path = f"{store}/{trial}.{attempt}-{word}"
    event = e.VersionOffered(
        TrialId(trial), attempt, 5, store, base, path, f"{trial}.{attempt}{word}{store}", 10
    )
    return scene.say(event)


def review(scene: Scene, keep: int = 0) -> a.GrantVersions:
    (grant,) = of_kind(scene.say(e.StoresReviewed(keep)), a.GrantVersions)
    return grant


def numbers(scene: Scene, store: str = "omega") -> list[int]:
    versions = scene.state.stores[store]
    found = [number for number, each in enumerate(versions, 1) if each is not None]
    assert found == scene.state.kept_versions[store]
    return found


def test_the_newest_stay_and_the_keeper_is_told_when_there_are_more() -> None:
    scene = scene_of(1)
    assert not of_kind(publish(scene, 0, 0), a.ReviewStores)
    assert not of_kind(publish(scene, 0, 1), a.ReviewStores)
    assert of_kind(publish(scene, 0, 2), a.ReviewStores)
    publish(scene, 0, 3)
    grant = review(scene)
    assert [each[:2] for each in grant.removed] == [("omega", 1), ("omega", 2)]
    assert [each[2].path for each in grant.removed] == ["omega/0.1-0", "omega/0.1-1"]
    assert [each[:2] for each in grant.kept] == [("omega", 3), ("omega", 4)]
    assert numbers(scene) == [3, 4]
    assert review(scene).removed == (), "once"
    (named,) = of_kind(scene.say(e.StoresReviewed(question=7)), a.GrantVersions)
    assert named.question == 7
    publish(scene, 0, 4)
    assert len(scene.state.stores["omega"]) == 5, "numbers count on"
    scene.assert_replays()


def asks(out: list[a.Action]) -> bool:
    return bool(of_kind(out, a.ReviewStores))


def test_the_keeper_is_not_told_while_all_that_is_old_is_needed() -> None:
    scene = scene_of(3, keep=1)
    publish(scene, 0, 0)
    assert not asks(publish(scene, 1, 0)), "is told of version 1, and reads it"
    scene.say(e.VersionsHeld("omega", (2,)))
    assert not asks(publish(scene, 0, 1))
    assert not asks(publish(scene, 0, 2)), "1 is read, 2 is held"
    scene.exit(2)
    assert not asks(scene.deliver(2)), "a trial has ended that read none of them"
    scene.exit(1)
    assert asks(scene.deliver(1)), "nobody reads version 1 any more"
    assert [n for _, n, _ in review(scene).removed] == [1]
    assert not asks(scene.say(e.VersionsHeld("omega", (2, 3))))
    assert asks(scene.say(e.VersionsHeld("omega", (3,)))), "nobody holds version 2 any more"
    assert [n for _, n, _ in review(scene).removed] == [2]
    scene.assert_replays()


def test_with_many_at_hand_the_keeper_is_told_without_a_look_at_each_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of ten thousand that go on would look at all the others."""
    scene = scene_of(2, keep=1)
    publish(scene, 0, 0)
    assert not asks(publish(scene, 1, 0)), "is told of version 1, and reads it"
    monkeypatch.setattr(stores, "FEW", 1)
    monkeypatch.setattr(stores, "_judged", None)
    assert asks(publish(scene, 0, 1))


def test_the_keeper_is_told_when_what_was_newest_at_a_request_is_free() -> None:
    scene = scene_of(1)
    publish(scene, 0, 0)
    scene.say(e.SettingsUpdated(scene.settings.__class__(slots=2, lookahead=2, keep_versions=1)))
    scene.say(e.Tick())
    assert list(scene.state.open) == [1], "asked for while version 1 was the newest"
    assert not asks(publish(scene, 0, 1))
    assert not asks(publish(scene, 0, 2))
    assert asks(scene.say(e.Proposed(TrialId(1), "{}")))
    assert [n for _, n, _ in review(scene).removed] == [1, 2]


def test_all_stay_where_no_bound_is_set_or_that_of_the_store_says_so() -> None:
    for settings_ in ({"keep": 0}, {"keep_versions_of": {"omega": 0}}):
        scene = scene_of(1, **settings_)  # type: ignore[arg-type]
        for base in range(6):
            assert not of_kind(publish(scene, 0, base), a.ReviewStores)
        assert review(scene).removed == ()
    scene = scene_of(1, keep=0, keep_versions_of={"omega": 1})
    for base in range(3):
        publish(scene, 0, base)
        publish(scene, 0, base, "other")
    assert [each[:2] for each in review(scene).removed] == [("omega", 1), ("omega", 2)]
    assert numbers(scene, "other") == [1, 2, 3]
    assert [n for _, n, _ in review(scene, keep=1).removed] == [1, 2], "the other one, asked for"


def test_what_a_trial_pins_stays_until_its_last_attempt_is_over() -> None:
    scene = scene_of(1, trial_retries=1)
    publish(scene, 0, 0)
    scene.exit(0)
    scene.deliver(0)
    scene.say(e.Proposed(TrialId(1), "{}", reads=(("omega", 1),)))
    scene.state.settings = scene.settings
    scene.started(1)
    for base in range(1, 5):
        publish(scene, 1, base)
    review(scene)
    assert numbers(scene) == [1, 4, 5]
    scene.exit(1, EndReason.FAILED)
    assert scene.state.backoff
    out = scene.say(e.StoresReviewed())
    assert numbers(scene)[0] == 1, "its next attempt reads it"
    (start,) = of_kind(out, a.StartAttempt)
    assert [each.number for each in start.versions] == [1]
    scene.started(1, 2)
    scene.exit(1, EndReason.FAILED, 2)
    out = scene.deliver(1)
    assert of_kind(out, a.ReviewStores), "the keeper is told"
    review(scene)
    assert numbers(scene) == [4, 5]


def test_what_a_publisher_was_told_of_stays_until_it_has_published() -> None:
    scene = scene_of(2)
    publish(scene, 0, 0)
    publish(scene, 1, 0)  # refused, and told of version 1
    for base in range(1, 6):
        publish(scene, 0, base)
    review(scene)
    assert numbers(scene) == [1, 5, 6], "it merges with 1, or goes on from there"
    publish(scene, 1, 6)
    publish(scene, 0, 7)
    publish(scene, 0, 8)
    review(scene)
    assert numbers(scene) == [7, 8, 9], "7 is where it stands now"
    scene.exit(1)
    scene.deliver(1)
    publish(scene, 0, 9)
    review(scene)
    assert numbers(scene) == [9, 10]


def test_what_an_attempt_was_told_of_is_nothing_to_the_next() -> None:
    """Mutation: the versions that a lost attempt was told of stay for as long as its trial runs."""
    scene = scene_of(2, keep=1)
    publish(scene, 0, 0)
    assert not asks(publish(scene, 1, 0)), "is told of version 1, and reads it"
    publish(scene, 0, 1)
    assert review(scene).removed == ()
    scene.exit(1, EndReason.PREEMPTED)
    while scene.trial(1).attempt < 2:
        scene.tick()
    assert [n for _, n, _ in review(scene).removed] == [1], "it has read nothing yet"
    scene.assert_replays()


def test_what_was_newest_when_a_request_was_asked_stays_until_it_is_answered() -> None:
    scene = scene_of(1)
    publish(scene, 0, 0)
    scene.say(e.SettingsUpdated(scene.settings.__class__(slots=2, lookahead=2, keep_versions=1)))
    scene.say(e.Tick())
    assert list(scene.state.open) == [1], "asked for while version 1 was the newest"
    for base in range(1, 4):
        publish(scene, 0, base)
    review(scene)
    assert numbers(scene) == [1, 2, 3, 4]
    scene.wait(1, 0)
    review(scene)
    assert numbers(scene) == [1, 2, 3, 4], "it may have looked before it waited"
    scene.exit(0)
    scene.deliver(0)
    scene.say(e.Proposed(TrialId(1), "{}", reads=(("omega", 2),)))
    review(scene)
    open_now = min(scene.state.trials[each].asked_serial for each in scene.state.open)
    assert open_now == 4
    assert numbers(scene) == [2, 4]


def test_what_the_tuner_holds_stays_until_it_holds_another() -> None:
    scene = scene_of(1)
    for base in range(4):
        publish(scene, 0, base)
    scene.say(e.VersionsHeld("omega", (1, 2)))
    review(scene)
    assert numbers(scene) == [1, 2, 3, 4]
    scene.say(e.TunerHostLost("gone"))
    scene.say(e.VersionsHeld("omega", (4,)))
    assert not scene.counted, "a process that is only restored repeats itself"
    review(scene)
    assert numbers(scene) == [1, 2, 3, 4]
    scene.say(e.TunerHostReady())
    scene.say(e.VersionsHeld("omega", (2,)))
    review(scene)
    assert numbers(scene) == [2, 3, 4]
    scene.say(e.VersionsHeld("omega", ()))
    review(scene)
    assert numbers(scene) == [3, 4]
    scene.assert_replays()


def test_a_proposal_that_pins_what_went_is_refused_and_told_how_to_keep_it() -> None:
    scene = scene_of(1)
    for base in range(4):
        publish(scene, 0, base)
    review(scene)
    scene.exit(0)
    scene.deliver(0)
    (open_now,) = scene.state.open
    out = scene.say(e.Proposed(open_now, "{}", reads=(("omega", 1),)))
    (told,) = of_kind(out, a.ReportTunerError)
    assert "version 1 of the shared store 'omega' was removed" in told.text
    assert "hold()" in told.text


def test_an_offer_that_is_repeated_is_found_although_many_came_after_it() -> None:
    scene = scene_of(2, keep=1)
    (first,) = of_kind(publish(scene, 0, 0), a.AnswerOffer)
    for base in range(1, 6):
        publish(scene, 1, base)
        review(scene)
    (again,) = of_kind(publish(scene, 0, 0), a.AnswerOffer)
    assert again == first


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), max_size=60))
def test_in_any_order_nothing_goes_that_a_trial_reads_or_was_told_of(
    turns: list[tuple[int, int]],
) -> None:
    """Invariants are checked after each event (``Scene.say``): a read that went is found there.
    What was the newest when a request was asked can be pinned by it, always."""
    scene = Scene(slots=3, lookahead=3, keep_versions=1)
    newest_at: dict[int, int] = {}
    bases: dict[int, int] = {}
    serial = 0
    for what, pick in turns:
        state = scene.state
        for each in state.open:
            newest_at.setdefault(each, len(state.stores.get("omega", ())))
        running = sorted(state.running)
        if what <= 2 and running:
            trial = running[pick % len(running)]
            serial += 1
            word = f"{serial:x}"
            event = e.VersionOffered(
                trial, 1, 5, "omega", bases.get(trial, 0), f"omega/{trial}.1-{word}", word, 1
            )
            (answer,) = of_kind(scene.say(event), a.AnswerOffer)
            assert answer.newest is not None
            bases[trial] = answer.newest.number
        elif what <= 4 and state.open:
            asked = sorted(state.open)[pick % len(state.open)]
            then = newest_at.pop(asked)
            reads = (("omega", then),) if then else ()
            out = scene.say(e.Proposed(asked, "{}", reads=reads))
            assert not of_kind(out, a.ReportTunerError), "what it saw is there"
            bases[asked] = then
        elif what == 5 and running:
            scene.exit(running[pick % len(running)])
            for over in list(scene.state.delivering):
                scene.deliver(over)
        else:
            scene.say(e.StoresReviewed())
        for trial in scene.state.running:
            if bases.get(trial):
                assert there(scene.state, "omega", bases[trial]) is not None
    scene.assert_replays()
