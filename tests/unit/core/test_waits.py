"""Who waits for whom: answers, refusals, and what a parent's end does to those below it."""

from __future__ import annotations

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.endings import CHAIN_LIMIT
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, FailReason, TrialState, Verdict
from dispatcher.core.waits import resolve
from tests.support.scene import Scene, of_kind

OK, BAD = Verdict(), Verdict(FailReason.FAILED)


@pytest.mark.parametrize(
    "mode, verdicts, kind, parent",
    [
        ("all", [OK, OK], "granted", None),
        ("all", [OK, None], "pending", None),
        ("all", [None, BAD], "failed", 1),
        ("all", [BAD, BAD], "failed", 0),
        ("any", [None, OK], "granted", 1),
        ("any", [BAD, OK], "granted", 1),
        ("any", [BAD, None], "pending", None),
        ("any", [BAD, BAD], "failed", 0),
        ("all", [], "granted", None),
    ],
)
def test_the_rule(mode: str, verdicts: list[Verdict | None], kind: str, parent: int | None) -> None:
    answer = resolve(range(len(verdicts)), mode, lambda p: verdicts[p])  # type: ignore[arg-type]
    assert (answer.kind, answer.parent) == (kind, parent)


def answer(actions: list[a.Action]) -> a.AnswerWait:
    (found,) = of_kind(actions, a.AnswerWait)
    return found


def test_all_waits_for_the_last_and_any_for_the_first() -> None:
    scene = Scene(slots=4)
    scene.propose(0)
    scene.propose(1)
    scene.wait(2, 0, 1, mode="all")
    scene.wait(3, 0, 1, mode="any")
    scene.run(1)
    scene.deliver(1)
    assert scene.trial(3).state is TrialState.OPEN
    assert scene.trial(2).state is TrialState.BLOCKED
    scene.run(0)
    scene.deliver(0)
    assert scene.trial(2).state is TrialState.OPEN


def test_any_outlives_a_parent_that_failed() -> None:
    scene = Scene(slots=4, trial_retries=0)
    scene.propose(0)
    scene.propose(1)
    scene.wait(2, 0, 1, mode="any")
    scene.wait(3, 0, 1, mode="all")
    scene.exit(0, EndReason.FAILED)
    scene.deliver(0)
    assert scene.trial(2).state is TrialState.BLOCKED
    assert scene.trial(3).state is TrialState.OPEN


def test_parents_that_ended_are_answered_at_once() -> None:
    scene = Scene(slots=3, trial_retries=0)
    scene.whole(0)
    scene.propose(1)
    scene.exit(1, EndReason.TIMED_OUT)
    scene.deliver(1)
    found = answer(scene.wait(2, 0))
    assert (found.kind, found.parents) == ("granted", (0,))
    found = answer(scene.wait(2, 1, 0, ticket=2))
    assert (found.kind, found.parent, found.reason) == ("failed", 1, FailReason.TIMED_OUT)
    assert scene.trial(2).state is TrialState.OPEN


def test_unknown_and_self() -> None:
    scene = Scene()
    found = answer(scene.wait(0, 99))
    assert (found.kind, found.parent) == ("unknown", 99)
    assert answer(scene.wait(0, 0, ticket=2)).kind == "self"


def test_a_cycle_of_three_is_refused_and_named() -> None:
    scene = Scene(slots=3)
    scene.wait(0, 1)
    scene.wait(1, 2)
    found = answer(scene.wait(2, 0))
    assert (found.kind, found.chain) == ("cycle", (2, 0, 1, 2))
    assert scene.trial(2).state is TrialState.OPEN
    scene.propose(2)  # caught: the others go on waiting for it
    assert scene.trial(1).state is TrialState.BLOCKED


def test_a_chain_of_abandoned_requests_is_named() -> None:
    scene = Scene(slots=4, trial_retries=0)
    scene.propose(0)
    for child in (1, 2, 3):
        scene.wait(child, child - 1)
    scene.exit(0, EndReason.FAILED)
    scene.deliver(0)
    for child in (1, 2):
        scene.refuse(child, e.RequestEnd.ABANDONED, parent=TrialId(child - 1))
    assert scene.trial(2).verdict == Verdict(FailReason.NO_TRIAL, (TrialId(1), TrialId(0)))
    found = answer(scene.wait(3, 2, ticket=2))
    assert (found.reason, found.chain) == (FailReason.NO_TRIAL, (1, 0))


def test_a_wait_given_up_goes_on_and_its_late_word_is_late() -> None:
    scene = Scene()
    scene.propose(0)
    scene.wait(1, 0, ticket=4)
    scene.say(e.WaitGivenUp(TrialId(1), 3))
    assert (scene.counted, scene.trial(1).state) == (False, TrialState.BLOCKED)
    scene.say(e.WaitGivenUp(TrialId(1), 4))
    assert (scene.counted, scene.trial(1).state) == (True, TrialState.OPEN)
    assert not scene.state.waiters


def test_a_foreign_wait_holds_no_slot() -> None:
    scene = Scene(slots=1)
    (opened,) = scene.say(e.ForeignWaitSeen(TrialId(0)))
    assert opened == a.OpenRequest(TrialId(1))
    scene.wait(0, 1)  # out of the foreign wait without a word, and into one of ours
    assert scene.state.waits[TrialId(0)].mode == "all"
    scene.say(e.ForeignWaitOver(TrialId(0)))
    assert not scene.counted
    scene.propose(1)
    scene.run(1)
    scene.deliver(1)
    scene.say(e.ForeignWaitSeen(TrialId(0)))
    scene.propose(0)  # answered straight out of it
    assert scene.trial(0).state in (TrialState.QUEUED, TrialState.RUNNING)


# -- children proposed before their parent ended -----------------------------------------------


def test_a_child_proposed_early_is_held_until_the_gate_opens() -> None:
    scene = Scene(slots=2)
    scene.propose(0)
    assert not of_kind(scene.propose(1, parent=0), a.StartAttempt)
    scene.run(0)
    scene.result(0)
    assert scene.trial(1).state is TrialState.HELD
    (start,) = of_kind(scene.end(0), a.StartAttempt)
    assert (start.restore_path, start.restore_digest, start.restore_kind) == (
        "t/0",
        "0.1",
        "bequeath",
    )


def test_a_held_child_of_a_failed_parent_never_starts() -> None:
    scene = Scene(slots=2, trial_retries=0)
    scene.propose(0)
    scene.propose(1, parent=0)
    scene.exit(0, EndReason.FAILED)
    actions = scene.deliver(0)
    assert not of_kind(actions, a.StartAttempt)
    (deliver,) = of_kind(actions, a.Deliver)
    assert (deliver.value, deliver.success) == (None, False)
    assert deliver.verdict == Verdict(FailReason.FAILED, (TrialId(0),))


def test_a_child_of_a_parent_that_failed_before_never_starts() -> None:
    scene = Scene(slots=2, trial_retries=0)
    scene.propose(0)
    scene.exit(0, EndReason.FAILED)
    scene.deliver(0)
    (deliver,) = of_kind(scene.propose(1, parent=0), a.Deliver)
    assert deliver.verdict == Verdict(FailReason.FAILED, (TrialId(0),))


def test_a_held_child_whose_parent_waits_for_it_is_a_cycle() -> None:
    scene = Scene(slots=3)
    scene.propose(0)
    scene.propose(1, parent=0)
    assert scene.trial(1).state is TrialState.HELD
    assert answer(scene.wait(2, 2)).kind == "self"
    scene.wait(2, 1, ticket=2)
    assert scene.trial(2).state is TrialState.BLOCKED


def test_chains_are_bounded() -> None:
    scene = Scene(slots=1, trial_retries=0)
    scene.propose(0)
    scene.exit(0, EndReason.FAILED)
    scene.deliver(0)
    for child in range(1, CHAIN_LIMIT + 5):
        scene.propose(child, parent=child - 1)
        scene.deliver(child)
    verdict = scene.trial(CHAIN_LIMIT + 4).verdict
    assert verdict is not None
    assert len(verdict.chain) == CHAIN_LIMIT


def test_ten_thousand_wait_for_one() -> None:
    from dispatcher.core import apply
    from dispatcher.core.settings import Settings

    scene = Scene(slots=1, lookahead=20_000)
    scene.say(e.TrialSubmitted("{}", "hand"))
    parent = max(scene.state.trials)
    scene.say(e.SettingsUpdated(Settings(slots=2, lookahead=20_000)))
    for _ in range(10_000):
        (request,) = scene.state.open
        apply(scene.state, e.WaitStarted(request, 1, (parent,)), scene.now)
    assert len(scene.state.blocked) == 10_000
    scene.say(e.FinalReported(parent, 1, 1, "1"))
    scene.exit(parent, files=True)
    scene.deliver(parent)
    assert not scene.state.blocked
    assert len(scene.state.open) == 10_002  # two more for the slots, one of them the parent's


def test_a_wait_that_the_tuner_host_has_answered_is_recorded_and_no_more() -> None:
    """Also after the thread stood still in something else: it moves again."""
    scene = Scene(slots=2)
    scene.propose(0)
    scene.run(0)
    scene.deliver(0)
    scene.say(e.ForeignWaitSeen(TrialId(1)))
    actions = scene.say(e.WaitStarted(TrialId(1), 1, (TrialId(0),), answered=True))
    assert of_kind(actions, a.AnswerWait) == []
    assert (scene.trial(1).state, scene.state.waits) == (TrialState.OPEN, {})
    scene.assert_replays()
