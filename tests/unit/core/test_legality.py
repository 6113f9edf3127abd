"""Every event against every state of its trial: an effect, late, or refused without a trace."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from dispatcher import core
from dispatcher.core import events as e
from dispatcher.core import legality
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, TrialState
from dispatcher.errors import InvalidTransition
from tests.support.scene import Scene, weights

T1 = TrialId(1)

EVENTS: dict[type, e.Event] = {
    e.WaitStarted: e.WaitStarted(T1, 1, (TrialId(0),)),
    e.WaitGivenUp: e.WaitGivenUp(T1, 1),
    e.ForeignWaitSeen: e.ForeignWaitSeen(T1),
    e.ForeignWaitOver: e.ForeignWaitOver(T1),
    e.Proposed: e.Proposed(T1, "{}"),
    e.RequestFailed: e.RequestFailed(T1, e.RequestEnd.ABANDONED),
    e.ResultDelivered: e.ResultDelivered(T1),
    e.DeliveryStandsStill: e.DeliveryStandsStill(T1),
    e.EndDelivered: e.EndDelivered(T1),
    e.AttemptStarted: e.AttemptStarted(T1, 1),
    e.MetricReported: e.MetricReported(T1, 1, 99, "1"),
    e.LastMetricKept: e.LastMetricKept(T1, 1, "1"),
    e.FinalReported: e.FinalReported(T1, 1, 99, "1"),
    e.WeightsPublished: e.WeightsPublished(T1, 1, 99, weights(1)),
    e.VersionOffered: e.VersionOffered(T1, 1, 99, "omega", 0, "omega/1.1-0a", "d", 7),
    e.AttemptEnded: e.AttemptEnded(T1, 1, EndReason.FINISHED),
    e.TrialStopRequested: e.TrialStopRequested(T1, EndReason.KILLED),
}


def _open(scene: Scene) -> None:
    pass


def _blocked(scene: Scene) -> None:
    scene.wait(1, 0)


def _parked(scene: Scene) -> None:
    scene.not_now(1)


def _held(scene: Scene) -> None:
    scene.propose(1, parent=0)


def _queued(scene: Scene) -> None:
    scene.say(e.WorkerJoined("local", 1))  # type: ignore[arg-type]
    scene.propose(1)


def _running(scene: Scene) -> None:
    scene.propose(1)
    scene.started(1)


def _backoff(scene: Scene) -> None:
    _running(scene)
    scene.exit(1, EndReason.FAILED)


def _delivering(scene: Scene) -> None:
    scene.propose(1)
    scene.run(1)


def _ended(scene: Scene) -> None:
    _delivering(scene)
    scene.deliver(1)


WAYS: dict[TrialState, Callable[[Scene], None]] = {
    TrialState.OPEN: _open,
    TrialState.BLOCKED: _blocked,
    TrialState.PARKED: _parked,
    TrialState.HELD: _held,
    TrialState.QUEUED: _queued,
    TrialState.RUNNING: _running,
    TrialState.BACKOFF: _backoff,
    TrialState.DELIVERING: _delivering,
    TrialState.ENDED: _ended,
}


def at(where: TrialState) -> Scene:
    scene = Scene()
    scene.propose(0)
    scene.say(e.WorkerJoined("local", 2, ((TrialId(0), 1),)))  # type: ignore[arg-type]
    WAYS[where](scene)
    assert scene.trial(1).state is where
    return scene


def test_the_table_is_whole() -> None:
    """Every event that names a trial has its rows, and no state is both legal and late."""
    named = {kind for kind, row in e.CATALOGUE.items() if row.legal}
    assert named == set(EVENTS)
    for kind in named:
        assert not e.CATALOGUE[kind].legal.keys() & e.CATALOGUE[kind].late


@pytest.mark.parametrize("kind", list(EVENTS), ids=lambda k: k.__name__)
@pytest.mark.parametrize("where", list(TrialState), ids=lambda s: s.name)
def test_effect_late_or_refused(kind: type, where: TrialState) -> None:
    scene = at(where)
    event = EVENTS[kind]
    before = copy.deepcopy(scene.state)
    row = e.CATALOGUE[kind]
    if where in row.legal and not legality.objection(scene.trial(1), event):
        scene.say(event)
        ours = (where, kind) == (TrialState.BLOCKED, e.ForeignWaitOver)  # it is in wait_for
        assert scene.counted is not ours
        return
    if where in row.late:
        assert scene.say(event) == []
        assert not scene.counted
    elif kind in (e.AttemptStarted, e.AttemptEnded):
        raise AssertionError("what an agent says is never a fault of ours")
    else:
        with pytest.raises(InvalidTransition, match="trial 1 cannot take"):
            core.apply(scene.state, event, scene.now + 1)
    assert scene.state == before  # deep: all dataclasses compare by value


@pytest.mark.parametrize("kind", list(EVENTS), ids=lambda k: k.__name__)
def test_a_trial_that_is_not(kind: type) -> None:
    scene = Scene(begin=False)
    before = copy.deepcopy(scene.state)
    with pytest.raises(InvalidTransition, match="names trial 1, which is not"):
        core.apply(scene.state, EVENTS[kind], 1.0)
    assert scene.state == before
