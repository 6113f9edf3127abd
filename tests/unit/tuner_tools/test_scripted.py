from __future__ import annotations

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason
from dispatcher.ports import Backend
from dispatcher.tuner_tools.scripted import FAILS, REFUSED, Script, ScriptedBackend

LOCAL = WorkerId("local")
FOR_EVER = Script(ticks=1 << 60)


def backend(script) -> ScriptedBackend:
    made = ScriptedBackend(script=lambda _order: script)
    port: Backend = made
    port.perform(a.LaunchWorker(LOCAL))
    assert made.take() == [e.WorkerJoined(LOCAL, 2)]
    return made


def start(made: ScriptedBackend, trial: int, attempt: int = 1) -> None:
    made.perform(a.StartAttempt(LOCAL, TrialId(trial), attempt, "{}"))


def test_it_reports_and_ends_after_its_ticks():
    made = backend(Script(ticks=3, metrics=("1", "2"), final="3", digest="d"))
    start(made, 1)
    start(made, 1)
    assert [type(x) for x in made.take()] == [e.AttemptStarted]
    made.tick(2)
    assert [x.seq for x in made.take()] == [1, 2]
    made.tick()
    weights, final, end = made.take()
    assert (weights.weights.digest, weights.seq) == ("d", 3)
    assert (final.value, final.seq) == ("3", 4)
    assert (end.reason, end.exit_code) == (EndReason.FINISHED, 0)
    assert made.running == []


def test_it_fails_and_refuses():
    made = backend(FAILS)
    start(made, 1)
    made.tick()
    assert made.take()[-1].reason is EndReason.FAILED
    made = backend(REFUSED)
    start(made, 1)
    (end,) = made.take()
    assert end.reason is EndReason.START_FAILED


def test_it_is_stopped():
    made = backend(FOR_EVER)
    start(made, 1)
    made.perform(a.StopAttempt(LOCAL, TrialId(1), 1, EndReason.KILLED, 1.0))
    made.tick()
    assert made.take()[-1].reason is EndReason.KILLED


def test_a_silent_one_goes_on_and_catches_up():
    made = backend(Script(ticks=1))
    start(made, 1)
    made.silent = True
    made.tick()
    assert made.check() == []
    made.perform(a.LaunchWorker(LOCAL))
    made.silent = False
    joined, *words = made.check()
    assert joined.holds == ((1, 1),)
    assert [type(w) for w in words] == [e.AttemptStarted, e.FinalReported, e.AttemptEnded]


def test_a_lost_one_forgets():
    made = backend(FOR_EVER)
    start(made, 1)
    made.lose("power")
    assert made.take() == [e.WorkerLost(LOCAL, "power")]
    start(made, 1)
    assert made.running == []
