"""Workers that cannot be kept, where there are others."""

from __future__ import annotations

import itertools
from dataclasses import replace

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import Phase
from dispatcher.core.settings import WORKER_LOSSES_IN_A_ROW
from dispatcher.core.trouble import is_given_up
from dispatcher.core.why import Cause, why
from tests.support.scene import HOST, Scene

A, B = WorkerId("a"), WorkerId("b")


def scene(workers: int | None = None) -> Scene:
    """None: as journals of older heads have it."""
    one = Scene(begin=False)
    if workers is not None:
        one.state.settings = replace(one.settings, workers=workers)
    one.say(e.HeadStarted(1), e.TunerHostReady())
    return one


def test_one_that_is_hopeless_is_given_up_and_the_rest_goes_on() -> None:
    """Mutation: ``hopeless`` counts as one loss."""
    one = scene(2)
    one.say(e.WorkerJoined(B, 2))
    actions = one.say(e.WorkerLost(A, "host key unknown", hopeless=True))
    assert one.state.phase is Phase.RUNNING
    assert a.LaunchWorker(A) in actions, "it may be mended while we run"
    assert [x.text for x in actions if isinstance(x, a.ReportWorker)] == [
        "worker a is lost: host key unknown"
    ]


def test_with_the_last_one_the_experiment_fails_and_names_all_reasons() -> None:
    one = scene(2)
    one.say(e.WorkerLost(A, "host key unknown", hopeless=True))
    assert one.state.phase is Phase.RUNNING, "b has not been heard of yet"
    one.say(e.WorkerLost(B, "refused", hopeless=True))
    assert one.state.phase in (Phase.DRAINING, Phase.FAILED)
    assert "host key unknown" in one.state.phase_reason
    assert "refused" in one.state.phase_reason


def test_one_that_comes_back_is_counted_on_again() -> None:
    one = scene(2)
    one.say(e.WorkerLost(A, "refused", hopeless=True))
    one.say(e.WorkerJoined(A, 2))
    one.say(e.WorkerLost(B, "refused", hopeless=True))
    assert one.state.phase is Phase.RUNNING
    assert one.state.workers[A].trouble == ""


def test_alone_it_is_as_it_was() -> None:
    """Journals of older heads: ``workers`` is 1 there. Mutation: its default is another."""
    one = scene()
    for _ in range(WORKER_LOSSES_IN_A_ROW - 1):
        one.say(e.WorkerLost(A, "gone"))
        assert one.state.phase is Phase.RUNNING
    one.say(e.WorkerLost(A, "gone"))
    assert one.state.phase in (Phase.DRAINING, Phase.FAILED)
    assert one.state.phase_reason == "worker a cannot be kept alive: gone"


JOINS, HEAD = "joins", "a head begins"
LOSSES = {"is lost": 1, "is kept out": 0, "is hopeless": WORKER_LOSSES_IN_A_ROW}


def test_given_up_is_who_was_lost_so_often_in_a_row_in_any_order_of_things() -> None:
    """Every order of up to six of these: a join begins the row anew, and so does a head."""
    for kinds in itertools.product((JOINS, HEAD, *LOSSES), repeat=4):
        _lives_through(kinds)
    for kinds in itertools.product((JOINS, "is lost"), repeat=6):
        _lives_through(kinds)


def _lives_through(kinds: tuple[str, ...]) -> None:
    one = scene(2)
    in_a_row, alive = 0, False
    for kind in kinds:
        if kind == JOINS:
            one.say(e.WorkerJoined(A, 2))
            in_a_row, alive = 0, True
        elif kind == HEAD:
            one.say(e.HeadStarted(one.state.epoch + 1))
            in_a_row, alive = 0, False
        else:
            more = {"hopeless": kind == "is hopeless", "kept_out": kind == "is kept out"}
            one.say(e.WorkerLost(A, "gone", **more))
            in_a_row, alive = in_a_row + LOSSES[kind], False
        known = one.state.workers.get(A)
        given_up = known is not None and is_given_up(known)
        assert given_up == (not alive and in_a_row >= WORKER_LOSSES_IN_A_ROW), kinds
        assert one.state.phase is Phase.RUNNING, "there is another one"
    one.say(e.WorkerLost(B, "gone", hopeless=True))
    both = not alive and in_a_row >= WORKER_LOSSES_IN_A_ROW
    assert (one.state.phase is not Phase.RUNNING) == both, kinds


def test_why_names_the_trouble_of_each() -> None:
    one = scene(2)
    one.say(e.WorkerLost(A, "host key unknown", hopeless=True))
    one.propose(0)
    found = why(one.state, one.state.now)
    assert found.cause is Cause.WORKER_LOST
    assert "worker a is not there (host key unknown)" in found.text


def test_workers_without_slots_of_their_own_follow_the_experiments() -> None:
    """Raised and lowered while it runs; their agents say what was so when they were started."""
    scene = Scene(slots=1, slots_follow=("local",), workers=1)
    scene.propose(0)
    scene.say(e.SettingsUpdated(replace(scene.state.settings, slots=3)))
    assert len(scene.state.open) == 2
    scene.propose(1)
    scene.propose(2)
    assert sorted(scene.state.running) == [0, 1, 2]
    scene.say(e.WorkerJoined(HOST, 1, holds=((TrialId(0), 1), (TrialId(1), 1), (TrialId(2), 1))))
    assert scene.state.workers[HOST].slots == 3
    scene.say(e.SettingsUpdated(replace(scene.state.settings, slots=2)))
    scene.run(0)
    scene.deliver(0)
    assert len(scene.state.running) == 2
    assert not scene.state.open
    scene.say(e.HeadStarted(2, replace(scene.state.settings, slots=4)), e.WorkerJoined(HOST, 3))
    assert scene.state.workers[HOST].slots == 4
    scene.assert_replays()


def test_other_workers_keep_their_slots_and_one_that_takes_nothing_takes_nothing() -> None:
    scene = Scene(slots=1, slots_follow=("local",), workers=0)
    scene.say(e.WorkerJoined(WorkerId("a"), 1))
    scene.say(e.SettingsUpdated(replace(scene.state.settings, slots=3)))
    slots = {name: worker.slots for name, worker in scene.state.workers.items()}
    assert slots == {"local": 0, "a": 1}
