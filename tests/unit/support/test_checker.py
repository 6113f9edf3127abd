"""The judge is judged: a journal that keeps every promise, and one doctored for each rule."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dispatcher.control.messages import ControlRequest
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Weights
from dispatcher.core.resources import Device, Offer
from dispatcher.core.settings import Settings
from dispatcher.ports import JournalRow
from tests.support.checker import Harm, Ordered, Witnesses, check_journal
from trial_runtime import facts

LOCAL = WorkerId("local")
Events = list[e.Event]


def weights(trial: int, attempt: int = 1) -> Weights:
    return Weights(f"{trial}.{attempt}", "bequeath", 10)


def proposed(trial: int, parent: int | None = None) -> e.Event:
    restore = None if parent is None else f"t/{parent}"
    return e.Proposed(TrialId(trial), "{}", f"t/{trial}", restore)


def attempt(trial: int, number: int = 1, reason: EndReason = EndReason.FINISHED) -> Events:
    t = TrialId(trial)
    return [
        e.AttemptStarted(t, number),
        e.MetricReported(t, number, 1, "0.1"),
        e.WeightsPublished(t, number, 2, weights(trial, number)),
        e.FinalReported(t, number, 3, f"0.{trial}"),
        e.AttemptEnded(t, number, reason),
    ]


def told(trial: int) -> Events:
    return [e.ResultDelivered(TrialId(trial)), e.EndDelivered(TrialId(trial))]


def good() -> Events:
    """A parent, and its child."""
    return [
        e.ExperimentCreated(Settings(slots=1, lookahead=4, max_trials=2)),
        e.HeadStarted(1),
        e.WorkerJoined(LOCAL, 1),
        e.TunerHostReady(),
        proposed(0),
        *attempt(0),
        *told(0),
        proposed(1, parent=0),
        *attempt(1),
        *told(1),
    ]


def calls() -> list[tuple[str, int, object]]:
    return [
        ("generate", 0, None),
        ("result", 0, "0.0"),
        ("end", 0, True),
        ("granted", 1, ["all", 0]),
        ("generate", 1, None),
        ("result", 1, "0.1"),
        ("end", 1, True),
    ]


def start(trial: int, row: int, digest: str | None = None, parent: int | None = None) -> Ordered:
    restore = None if parent is None else f"t/{parent}"
    order = a.StartAttempt(LOCAL, TrialId(trial), 1, "{}", f"t/{trial}", restore, digest)
    return Ordered(row - 1, row, order)


def judged(events: Events, seen: Witnesses | None = None, *, over: bool = True) -> list[str]:
    rows = [JournalRow(n, float(n), event) for n, event in enumerate(events, 1)]
    return check_journal(rows, seen or Witnesses(calls=calls()), over=over)


def replaced(kind: type, by: Events, which: int = 0) -> Events:
    """The good journal with the ``which``-th event of a kind replaced."""
    events = good()
    places = [n for n, event in enumerate(events) if isinstance(event, kind)]
    events[places[which] : places[which] + 1] = by
    return events


def without(kind: type, which: int = 0) -> Events:
    return replaced(kind, [], which)


def test_a_good_journal_is_good() -> None:
    seen = Witnesses(
        calls=calls(),
        orders=[start(0, 5), start(1, 13, "0.1", parent=0)],
        words=[facts.FinalReported(0, 1, 3, "0.0"), facts.AttemptEnded(0, 1, EndReason.FINISHED)],
        metrics={(0, 1, 1)},
        wishes=[ControlRequest(1, "snapshot", {})],
    )
    assert not judged(good(), seen)


DOCTORED: dict[str, Callable[[], Events]] = {
    "was delivered (promise 1)": lambda: [
        *good()[:10],
        proposed(1, parent=0),
        *attempt(1),
        *told(0),
        *told(1),
    ],
    "had weights (promise 1)": lambda: without(e.WeightsPublished),
    "could bequeath": lambda: [
        *good()[:6],
        e.AttemptEnded(TrialId(0), 1, EndReason.KILLED, weights=weights(0)),
        e.EndDelivered(TrialId(0)),
        proposed(1, parent=0),
        *attempt(1),
        *told(1),
    ],
    "result of 0 delivered twice": lambda: replaced(e.EndDelivered, [*told(0)]),
    "end of 1 delivered twice": lambda: [*good(), e.EndDelivered(TrialId(1))],
    "delivered after its end": lambda: [
        *without(e.ResultDelivered, 1),
        e.ResultDelivered(TrialId(1)),
    ],
    "has no result to deliver": lambda: without(e.FinalReported, 1),
    "without its result": lambda: without(e.ResultDelivered, 1),
    "was never delivered": lambda: good()[:-2],
    "ended before": lambda: [
        *good()[:4],
        proposed(0),
        proposed(1),
        *attempt(0),
        *attempt(1),
        *told(1),
        *told(0),
    ],
    "speaks first after its trial was over": lambda: [*good(), *attempt(1, 2)],
    "began while the one before ran": lambda: replaced(
        e.WeightsPublished, [e.AttemptStarted(TrialId(0), 2)]
    ),
    "repeats one that reported its result": lambda: replaced(
        e.AttemptEnded,
        [
            e.AttemptEnded(TrialId(1), 1, EndReason.FAILED),
            e.AttemptStarted(TrialId(1), 2),
            e.AttemptEnded(TrialId(1), 2, EndReason.FINISHED),
        ],
        1,
    ),
    "head 1 leads after head 1": lambda: [*good(), e.HeadStarted(1)],
    "attempts on 1 slots": lambda: replaced(
        e.AttemptStarted, [e.AttemptStarted(TrialId(0), 1), proposed(7), *attempt(7)[:1]]
    ),
    "trials of at most 2": lambda: [*good(), proposed(2), *attempt(2), *told(2)],
    "both save to": lambda: replaced(e.Proposed, [e.Proposed(TrialId(1), "{}", "t/0", None)], 1),
    "tried again (promise 9)": lambda: [
        *good()[:8],
        e.AttemptEnded(TrialId(0), 1, EndReason.KILLED),
        *attempt(0, 2),
        *told(0),
    ],
    "is a trial that was killed": lambda: replaced(
        e.AttemptEnded,
        [
            e.TrialStopRequested(TrialId(1), EndReason.KILLED),
            e.AttemptEnded(TrialId(1), 1, EndReason.FAILED),
            *attempt(1, 2),
        ],
        1,
    ),
    "nobody's": lambda: replaced(e.Proposed, [proposed(1, parent=9)], 1),
}


@pytest.mark.parametrize("words", DOCTORED)
def test_a_doctored_journal_is_seen_through(words: str) -> None:
    found = judged(DOCTORED[words](), Witnesses())
    assert any(words in sentence for sentence in found), found


LIES: dict[str, Witnesses] = {
    "told the result of 0 twice": Witnesses(calls=[*calls()[:2], *calls()[1:]]),
    "told the end of 0 before its result": Witnesses(
        calls=[calls()[0], calls()[2], calls()[1], *calls()[3:]]
    ),
    "lacks the result of 1": Witnesses(calls=calls()[:5]),
    "lacks the end of 1": Witnesses(calls=calls()[:6]),
    "was over too early": Witnesses(calls=[calls()[3], *calls()[:3], *calls()[4:]]),
    "was told '7' for 0": Witnesses(calls=[("result", 0, "7"), ("end", 0, True)]),
    "told that 0 failed, and it did not": Witnesses(calls=[("end", 0, False)]),
    "acknowledged, and not in the journal: AttemptEnded": Witnesses(
        words=[facts.AttemptEnded(0, 2, EndReason.FAILED)]
    ),
    "acknowledged, and not in the journal: FinalReported": Witnesses(
        words=[facts.FinalReported(0, 1, 4, "0.9")]
    ),
    "acknowledged, and not in the journal: MetricReported": Witnesses(
        words=[facts.MetricReported(0, 1, 2, "0.9")], metrics={(0, 1, 1)}
    ),
    "the stop of trial 0 was acknowledged": Witnesses(
        wishes=[ControlRequest(1, "stop_trial", {"trial": 0})]
    ),
    "was acknowledged and is gone": Witnesses(
        wishes=[ControlRequest(1, "submit", {"parameters": {"as": "hand/1"}})]
    ),
    "is told to find 0.2, and 0.1 is right": Witnesses(orders=[start(1, 13, "0.2", parent=0)]),
    "is told to find None, and 0.1 is right": Witnesses(orders=[start(1, 13, None, parent=0)]),
    "whose weights may go": Witnesses(
        orders=[
            Ordered(12, 13, a.GrantRemoval((TrialId(0),))),
            start(1, 14, "0.1", parent=0),
        ]
    ),
}


@pytest.mark.parametrize("words", LIES)
def test_a_witness_who_saw_otherwise_is_heard(words: str) -> None:
    found = judged(good(), LIES[words])
    assert any(words in sentence for sentence in found), found


def test_a_trial_that_failed_is_no_success() -> None:
    events = replaced(e.AttemptEnded, [e.AttemptEnded(TrialId(1), 1, EndReason.FAILED)], 1)
    found = judged(events, Witnesses(calls=[("end", 1, True)]))
    assert any("was told that 1 succeeded; it failed" in sentence for sentence in found), found


@pytest.mark.parametrize("reason", [EndReason.STOPPED_EARLY, EndReason.KILLED])
@pytest.mark.parametrize("late", [False, True])
def test_what_ended_unheard_ended_as_it_was_to(reason: EndReason, late: bool) -> None:
    """Its agent ended while no head was there, after the order to stop, or before it."""
    order: Events = [e.TrialStopRequested(TrialId(1), reason)]
    end: Events = [e.AttemptEnded(TrialId(1), 1, EndReason.LOST)]
    events = replaced(e.AttemptEnded, [*end, *order] if late else [*order, *end], 1)
    found = judged(events, Witnesses(calls=[("end", 1, True)]))
    faulty = any("was told that 1 succeeded; it" in sentence for sentence in found)
    assert faulty is (late or reason is EndReason.KILLED), found


@pytest.mark.parametrize("ails", [False, True])
def test_a_start_that_nobody_heard_may_be_placed_anew(ails: bool) -> None:
    """A hello says that a device is gone: the next attempt begins there, before the user's kill.
    With all devices in place the start would have been sent again, and the kill came first."""
    both = Offer(devices=(Device("a", 0), Device("b", 1)))
    events = good()
    events[2] = e.WorkerJoined(LOCAL, 1, offer=both)
    joined = e.WorkerJoined(LOCAL, 1, offer=Offer(devices=both.devices[:1]) if ails else both)
    begun = events.index(proposed(1, parent=0)) + 1
    second = [joined, *attempt(1, 2), *told(1), e.TrialStopRequested(TrialId(1), EndReason.KILLED)]
    again = e.WorkerJoined(LOCAL, 1, offer=both)
    found = judged([*events[:begun], *second, again], Witnesses(harms=[]))
    assert any("is a trial that was killed" in sentence for sentence in found) is not ails, found


@pytest.mark.parametrize(
    "told, words",
    [
        (e.DiskLow("weights", 1, 2), "are full (promise 8)"),
        (e.WorkerSuspect(LOCAL, 5.0), "which is silent (promise 9)"),
        (e.WorkerWaits(LOCAL, "Priority"), "which waits (promise 9)"),
    ],
)
def test_what_starts_where_nothing_should_is_seen(told: e.Event, words: str) -> None:
    events = good()
    events.insert(4, told)
    found = judged(events, Witnesses(orders=[start(0, 6)]))
    assert any(words in sentence for sentence in found), found
    forgiven = e.DiskRecovered("weights", 3) if words[4] == "f" else e.WorkerHeard(LOCAL)
    events.insert(5, forgiven)
    assert not judged(events, Witnesses(orders=[start(0, 7)]))


def test_rows_out_of_order_are_seen() -> None:
    rows = [JournalRow(2, 0.0, good()[0]), JournalRow(1, 0.0, good()[1])]
    assert "row 1 comes after row 2" in check_journal(rows)


def _unheard(*between: e.Event) -> Events:
    """An attempt that was ordered, of which no word came; its agent says hello without it, and the
    next one is killed by a user."""
    killed: Events = [
        e.TrialStopRequested(TrialId(0), EndReason.KILLED),
        e.AttemptEnded(TrialId(0), 2, EndReason.KILLED),
        e.EndDelivered(TrialId(0)),
    ]
    hello = e.WorkerJoined(LOCAL, 1)
    resumed: Events = [e.HeadStarted(2), hello, e.TunerHostReady()]
    return [*good()[:5], *between, hello, *resumed, e.AttemptStarted(TrialId(0), 2), *killed]


def test_a_start_that_was_lost_ends_unheard_when_all_is_stopped() -> None:
    """Nobody gives it again, though nothing has befallen its worker but a line that broke, and
    the next attempt is begun before the worker is harmed."""
    stop = e.StopRequested(e.StopKind.NOW, "the user")
    events = [*_unheard(stop), e.WorkerLost(LOCAL, "gone")]
    seen = Witnesses(orders=[start(0, 5)], harms=[Harm(len(events) - 1, LOCAL)])
    assert not judged(events, seen, over=False)
    events = [*_unheard(), e.WorkerLost(LOCAL, "gone")]
    found = judged(events, seen, over=False)
    assert any("0.2 is a trial that was killed" in sentence for sentence in found), found


def test_an_attempt_that_was_heard_of_does_not_end_by_a_line_that_breaks() -> None:
    """Whether or not it is to end: its agent has it, or a word of its end."""
    stop = e.StopRequested(e.StopKind.NOW, "the user")
    hello = e.WorkerJoined(LOCAL, 1)
    events = [*good()[:6], stop, hello, *attempt(0, 2), *attempt(0, 1)[2:], *told(0)]
    found = judged(events, Witnesses(orders=[start(0, 5)], harms=[]), over=False)
    assert any("0.2 began while the one before ran" in sentence for sentence in found), found


def test_what_an_attempt_that_was_given_up_ended_as_is_late() -> None:
    """Stopped early, and kept, it bequeaths what it had published; how it ended is heard when its
    children may begin. Without a loss its end comes first."""
    early = e.TrialStopRequested(TrialId(0), EndReason.STOPPED_EARLY)
    late = e.AttemptEnded(TrialId(0), 1, EndReason.SIGNALLED)
    for lost in (True, False):
        gone: Events = [e.WorkerLost(LOCAL, "gone"), e.WorkerJoined(LOCAL, 1)] if lost else []
        parent: Events = [*good()[:5], *attempt(0)[:-2], early, *gone, *told(0), late]
        found = judged([*parent, proposed(1, parent=0), *attempt(1), *told(1)])
        assert any("could bequeath" in sentence for sentence in found) is not lost, found


def test_what_was_lost_is_forgiven() -> None:
    """A second attempt after its worker was lost, and the late words of the first."""
    lost: Events = [e.WorkerLost(LOCAL, "gone"), e.WorkerJoined(LOCAL, 1)]
    events = [*good()[:6], *lost, *attempt(0, 2), *attempt(0, 1)[2:], *told(0)]
    assert not judged(events, Witnesses())
