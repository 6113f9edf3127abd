"""Every arrow of the tables is taken by some experiment, and every other one is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.core.arrows import ARROWS, name_of
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, Rule, TrialState
from dispatcher.core.moves import let_go, move, new_trial
from dispatcher.errors import BrokenInvariant
from tests.support.cluster import Cluster
from tests.support.scene import HOST, Scene
from tests.unit.core.test_legality import WAYS, at
from tests.unit.core.test_store_retention import publish

S = TrialState
T0, T1 = TrialId(0), TrialId(1)

#: Trigger, state before (empty: new), state after.
Taken = tuple[str, str, str]

ALL: list[Taken] = sorted(
    (name_of(trigger), "" if before is None else before.name, after.name)
    for trigger, arrows in ARROWS.items()
    for before, after in arrows
)

NOWHERE = e.Proposed(T1, "{}", "t/1", "t/nowhere")  # a restore path that nobody saves to


def _answers(blocked: bool) -> list[Scene]:
    """All that a request may come to, from within the tuner or from a wait of its own."""

    def scene(**settings: Any) -> Scene:
        made = Scene(trial_retries=0, on_tuner_error="continue", **settings)
        if blocked:
            made.say(e.ForeignWaitSeen(T1))
        return made

    proposes = scene()
    proposes.propose(1)

    early = scene()
    early.propose(0)
    early.propose(1, parent=0)

    too_late = scene()
    too_late.propose(0)
    too_late.exit(0, EndReason.FAILED)
    too_late.deliver(0)
    too_late.propose(1, parent=0)

    done = [proposes, early, too_late]
    for ends_dropped in (True, False):
        for answer in (NOWHERE, e.RequestFailed(T1, e.RequestEnd.NONSENSE)):
            refused = scene(end_dropped=ends_dropped)
            refused.say(answer)
            done.append(refused)
    asked_again = Scene(on_tuner_error="retry")
    if blocked:
        asked_again.say(e.ForeignWaitSeen(T1))
    asked_again.say(NOWHERE)
    not_now = scene()
    not_now.not_now(1)
    return [*done, asked_again, not_now]


def _killed() -> list[Scene]:
    """Trials that are stopped wherever they are, and requests that answer all the same."""
    done = []
    for where in WAYS:
        if where not in (S.DELIVERING, S.ENDED):
            scene = at(where)
            scene.say(e.TrialStopRequested(T1, EndReason.KILLED))
            done.append(scene)
    for answer in (e.Proposed(T1, "{}"), e.RequestFailed(T1, e.RequestEnd.NONSENSE)):
        scene = Scene(end_dropped=True)
        scene.say(e.TrialStopRequested(T1, EndReason.KILLED), answer)
        done.append(scene)
    return done


def _waits() -> list[Scene]:
    given_up = Scene()
    given_up.wait(1, 0)
    given_up.say(e.WaitGivenUp(T1, 1))

    foreign = Scene()
    foreign.say(e.ForeignWaitSeen(T1))
    foreign.wait(1, 0)  # and so the foreign one was over
    foreign.say(e.ForeignWaitSeen(T0), e.ForeignWaitOver(T0))

    parent_ends = Scene()
    parent_ends.wait(1, 0)
    parent_ends.whole(0)

    version = Scene()
    version.propose(0, saves=False)
    version.started(0)
    version.say(e.WaitStarted(T1, 1, (), "version", "omega", 1))
    publish(version, 0, 0)

    host_dies = Scene()
    host_dies.wait(1, 0)
    host_dies.say(e.TunerHostLost("killed"))
    return [given_up, foreign, parent_ends, version, host_dies]


def _parents() -> list[Scene]:
    """Children that are held until their parent ends, well or not."""
    done = []
    for reason in (EndReason.FINISHED, EndReason.FAILED):
        scene = Scene(trial_retries=0)
        scene.propose(0)
        scene.propose(1, parent=0)
        if reason is EndReason.FINISHED:
            scene.publish(0)
        scene.exit(0, reason)
        scene.deliver(0)
        done.append(scene)
    return done


def _attempts() -> list[Scene]:
    done = []
    for reason in (EndReason.FINISHED, EndReason.FAILED, EndReason.SHUTDOWN):
        scene = Scene()
        scene.propose(0)
        scene.exit(0, reason)
        done.append(scene)
    done[1].tick()  # its back-off
    for retries in (0, 5):
        for event in (
            e.WorkerLost(HOST, "gone"),
            e.WorkerJoined(HOST, 2),
            e.WorkerWaits(HOST, "Priority"),
        ):
            scene = Scene(lost_retries=retries)
            scene.propose(0)
            scene.started(0)
            scene.say(event)
            done.append(scene)
    return done


def _places() -> list[Scene]:
    never_began = Cluster({"a": 1}, placed_anew=True)
    never_began.submit(gpus=1)
    never_began.say(e.HeadStarted(2), e.TunerHostReady())
    never_began.join("a", 0)

    too_large = Cluster({"a": 1})
    too_large.submit(gpus=2)
    return [never_began, too_large]


def _by_hand() -> list[Scene]:
    scene = Scene(trial_retries=0)
    scene.propose(0)
    scene.say(
        e.TrialSubmitted("{}", "t/2"),
        e.TrialSubmitted("{}", "t/3", "t/0"),
        e.TrialSubmitted("{}", "t/4", "t/nowhere"),
    )
    scene.exit(0, EndReason.FAILED)
    scene.deliver(0)
    scene.say(e.TrialSubmitted("{}", "t/5", "t/0"))
    return [scene]


def _not_now() -> list[Scene]:
    asked_again = Scene()
    asked_again.not_now(1)
    asked_again.whole(0)

    no_more = Scene(slots=1)
    no_more.not_now(0)
    return [asked_again, no_more]


EXPERIMENTS: list[Callable[[], list[Scene]]] = [
    lambda: _answers(blocked=False),
    lambda: _answers(blocked=True),
    _killed,
    _waits,
    _parents,
    _attempts,
    _places,
    _by_hand,
    _not_now,
]


@cache
def taken() -> set[Taken]:
    scenes = [scene for experiment in EXPERIMENTS for scene in experiment()]
    return {
        (name_of(step.trigger), "" if step.before is None else step.before.name, step.after.name)
        for scene in scenes
        for step in scene.state.trace or ()
    }


def test_the_tables_are_as_large_as_somebody_counted() -> None:
    """At the call sites of ``move``; more would let through what nothing does."""
    assert len(ALL) == 56
    assert len({(before, after) for _, before, after in ALL}) == 26


@pytest.mark.parametrize("arrow", ALL, ids=" ".join)
def test_each_arrow_is_taken(arrow: Taken) -> None:
    assert arrow in taken()


@pytest.mark.parametrize("trigger", [None, *ARROWS], ids=lambda t: name_of(t) if t else "nothing")
def test_no_other_arrow_is(trigger: Any) -> None:
    arrows = ARROWS[trigger] if trigger else frozenset()
    for where in S:
        scene = at(where)
        before = copy.deepcopy(scene.state)
        scene.state.trigger = trigger
        scene.state.trace = []
        for to in set(S) - {after for state, after in arrows if state is where}:
            with pytest.raises(BrokenInvariant, match=f"may not move it to {to.name}"):
                move(scene.state, scene.trial(1), to)
        assert scene.state == before
        assert scene.state.trace == []


@pytest.mark.parametrize("trigger", [None, *ARROWS], ids=lambda t: name_of(t) if t else "nothing")
def test_a_trial_comes_up_only_where_one_is_asked_for_or_submitted(trigger: Any) -> None:
    scene = Scene()
    before = copy.deepcopy(scene.state)
    scene.state.trigger = trigger
    for to in S:
        if trigger in (Rule.ASKED, e.TrialSubmitted) and to is S.OPEN:
            continue
        with pytest.raises(BrokenInvariant, match="is new"):
            new_trial(scene.state, to=to)
    assert scene.state == before


def test_nobody_is_let_go_for_no_reason() -> None:
    scene = at(S.BLOCKED)
    before = copy.deepcopy(scene.state)
    for trigger in (None, e.Proposed, Rule.PLACED):
        scene.state.trigger = trigger
        with pytest.raises(BrokenInvariant, match="may not move it to OPEN"):
            let_go(scene.state, scene.trial(1))
    assert scene.state == before


def test_after_an_event_nothing_moves() -> None:
    """What a rule may do ends with the rule: another hand would not be noticed otherwise."""
    for experiment in EXPERIMENTS:
        for scene in experiment():
            assert scene.state.trigger is None


def test_a_gate_that_opens_is_no_reason_for_what_comes_after_it() -> None:
    """Both requests that were told "not now" end by one rule, and the gate of the first opens in
    between. Mutation: the trigger is not put back."""
    scene = Scene(slots=2)
    scene.not_now(0)
    scene.not_now(1)
    assert [scene.trial(each).state for each in (0, 1)] == [S.ENDED, S.ENDED]
    ends = [step for step in scene.state.trace or () if step.after is S.ENDED]
    assert [(step.trial, step.trigger) for step in ends] == [
        (T0, Rule.TUNER_DONE),
        (T1, Rule.TUNER_DONE),
    ]
