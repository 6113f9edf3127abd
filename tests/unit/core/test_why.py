"""Promise 10: why nothing runs is answered in one sentence. Every cause has its scenario."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.core.why import Cause, why
from tests.support.scene import HOST, Scene


def _busy() -> Scene:
    scene = Scene(slots=1)
    scene.propose(0)
    return scene


def _over() -> Scene:
    scene = Scene(slots=1, max_trials=1)
    scene.whole(0)
    return scene


def _draining() -> Scene:
    scene = _busy()
    scene.say(e.StopRequested(e.StopKind.DRAIN, "Ctrl-C"))
    return scene


def _stalled() -> Scene:
    scene = Scene(slots=1, lookahead=1)
    scene.say(e.ForeignWaitSeen(TrialId(0)))
    scene.tick()
    return scene


def _host_away() -> Scene:
    scene = Scene(begin=False)
    scene.say(e.HeadStarted(1), e.WorkerJoined(HOST, 2))
    return scene


def _worker_away() -> Scene:
    scene = Scene()
    scene.say(e.WorkerLost(HOST, "gone"))
    scene.propose(0)
    return scene


def _worker_silent() -> Scene:
    scene = Scene()
    scene.say(e.WorkerSuspect(HOST, 30.0))
    scene.propose(0)
    return scene


def _backoff() -> Scene:
    scene = _busy()
    scene.exit(0, EndReason.FAILED)
    return scene


def _all_proposed() -> Scene:
    scene = Scene(slots=2, max_trials=1)
    scene.propose(0)
    return scene


def _not_now() -> Scene:
    scene = Scene(slots=2)
    scene.propose(0)
    scene.not_now(1)
    return scene


def _abandoned() -> Scene:
    scene = Scene(slots=2)
    scene.propose(0)
    while scene.state.open:
        (number,) = scene.state.open
        scene.refuse(number, e.RequestEnd.ABANDONED)
    return scene


def _blocked() -> Scene:
    scene = Scene(slots=2, max_trials=2)
    scene.propose(0)
    scene.wait(1, 0)
    return scene


def _lookahead() -> Scene:
    scene = Scene(slots=2, lookahead=1)
    scene.propose(0)
    scene.wait(1, 0)
    return scene


def _tuner_behind() -> Scene:
    scene = Scene(slots=1)
    while scene.state.open:
        (number,) = scene.state.open
        scene.propose(number)
        scene.run(number)
    return scene


def _starting() -> Scene:
    scene = Scene(slots=2, workers=1)
    scene.propose(0)
    scene.propose(1)
    return scene


SCENES: dict[Cause, tuple[Callable[[], Scene], str]] = {
    Cause.ALL_SLOTS_BUSY: (_busy, "all 1 slots are busy"),
    Cause.OVER: (_over, "the experiment is completed: all 1 trials are over"),
    Cause.DRAINING: (_draining, r"draining \(Ctrl-C\): 1 trials still run"),
    Cause.STALLED: (_stalled, "nothing can move any more: request 0 stands still"),
    Cause.TUNER_NOT_READY: (_host_away, "the tuner's process is starting"),
    Cause.WORKER_LOST: (_worker_away, "1 trials are queued, and no worker is there"),
    Cause.WORKER_SUSPECT: (_worker_silent, "1 trials are queued, and worker local has been silent"),
    Cause.BACKOFF: (_backoff, "trial 0 starts its next attempt in 1 s"),
    Cause.ALL_PROPOSED: (_all_proposed, "all 1 trials were proposed"),
    Cause.NOT_NOW: (_not_now, "the tuner said 'not now' to request 1"),
    Cause.ABANDONED: (_abandoned, "the last 32 requests failed with their parents"),
    Cause.BLOCKED: (_blocked, r"the last of 2 trials wait: request 1 waits for 0 \(running\)"),
    Cause.LOOKAHEAD_FULL: (_lookahead, "1 requests wait, as many as lookahead allows"),
    Cause.TUNER_BUSY: (Scene, "request 0 has been in generate_parameters for 0 s"),
    Cause.TUNER_BEHIND: (_tuner_behind, r"the tuner has \d+ results to take before more"),
    Cause.STARTING: (_starting, "1 trials wait for a free worker slot"),
}


@pytest.mark.parametrize("cause", list(Cause), ids=lambda c: c.name)
def test_every_cause_has_a_scene_and_a_sentence(cause: Cause) -> None:
    scene, sentence = SCENES[cause]
    state = scene().state
    explanation = why(state, state.now)
    assert explanation.cause is cause
    assert re.match(sentence, explanation.text), explanation.text
    assert "\n" not in explanation.text


def test_a_delivery_that_does_not_return_is_named() -> None:
    """As when the author's own lock is held by a request that waits for this very result."""
    scene = Scene(slots=2, max_trials=2)
    scene.propose(0)
    scene.wait(1, 0)
    scene.run(0)
    told = why(scene.state, scene.state.now + 60)
    assert told.cause is Cause.TUNER_BEHIND
    assert "taking the result of trial 0 for 60 s" in told.text
