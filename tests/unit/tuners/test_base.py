"""The base class must work whatever authors forget, and refuse waits that would never end."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from tuners import (
    CycleRefused,
    NoMoreTrialError,
    ParentFailed,
    SelfWait,
    Tuner,
    TunerError,
    UnknownParent,
    WaitCancelled,
    WaitNotAllowed,
    WaitTimeout,
    WaitWithLock,
)
from tuners.testing import OpenGate, ScriptedGate, with_gate


class Forgetful(Tuner):
    """Never calls super().__init__(), as most tuners in the wild."""

    def __init__(self) -> None:
        self.own = 1

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": self.wait_for(parameter_id - 1)}


def test_a_subclass_without_super_init_can_wait_lock_and_draw():
    tuner = with_gate(Forgetful())
    with tuner.lock, tuner.lock:
        assert tuner.rng(3).integers(10) == Forgetful().rng(3).integers(10)
    assert tuner.generate_parameters(5) == {"x": [4]}


def test_one_lock_per_tuner_even_when_many_threads_ask_first():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(20):
            tuner, start, seen = Forgetful(), threading.Barrier(16), []

            def ask(tuner=tuner, start=start, seen=seen):
                start.wait()
                seen.append(tuner.lock)

            threads = [threading.Thread(target=ask) for _ in range(16)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            assert len({id(lock) for lock in seen}) == 1
    finally:
        sys.setswitchinterval(interval)


def test_locks_are_not_shared_between_tuners_and_an_authors_own_lock_wins():
    assert Forgetful().lock is not Forgetful().lock
    tuner = with_gate(Forgetful())
    tuner.lock = threading.Lock()
    with tuner.lock:
        assert tuner.wait_for(1) == [1]  # a plain Lock has no owner to look at


def test_waiting_with_the_lock_held_is_named_at_once():
    tuner = with_gate(Forgetful(), ScriptedGate())
    with tuner.lock, pytest.raises(WaitWithLock, match=r"trials 1, 2 while holding self\.lock"):
        tuner.wait_for(1, 2)


def test_another_threads_lock_does_not_refuse_a_wait():
    tuner, held, done = with_gate(Forgetful()), threading.Event(), threading.Event()

    def hold():
        with tuner.lock:
            held.set()
            done.wait(120)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(120)
        assert tuner.wait_for(1) == [1]
    finally:
        done.set()
        thread.join()


def test_without_a_host_the_error_says_so():
    with pytest.raises(RuntimeError, match="not run by the dispatcher"):
        Forgetful().wait_for(0)


def test_the_gate_gets_each_parent_once_with_mode_and_timeout():
    class Recorder(OpenGate):
        def wait(self, parents, mode, timeout):
            self.seen = (parents, mode, timeout)
            return [2]

    gate = Recorder()
    assert with_gate(Forgetful(), gate).wait_for(1, np.int64(2), 1, mode="any", timeout=3) == [2]
    assert gate.seen == ((1, 2), "any", 3)
    assert all(type(parent) is int for parent in gate.seen[0])


@pytest.mark.parametrize("wrong", ["trials/1", 1.0, None, True, {"parameter_id": 1}])
def test_what_is_not_an_id_is_refused(wrong):
    with pytest.raises(TypeError, match="parameter_ids"):
        with_gate(Forgetful()).wait_for(wrong)


@pytest.mark.parametrize("options", [{"mode": "some"}, {"timeout": -1}, {"timeout": float("nan")}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError, match=r"mode|timeout"):
        with_gate(Forgetful()).wait_for(1, **options)


def test_fallback_stands_in_for_a_failed_parent_only():
    tuner = with_gate(Forgetful(), OpenGate(failed={1}))
    with pytest.raises(ParentFailed):
        tuner.wait_for(1)
    assert tuner.wait_for(1, fallback=None) is None
    assert tuner.wait_for(2, fallback=None) == [2]
    gate = ScriptedGate()
    gate.cancel()
    with_gate(tuner, gate)
    with pytest.raises(WaitCancelled):
        tuner.wait_for(1, fallback=None)


def test_rng_depends_on_seed_id_and_salt():
    tuner = Forgetful()
    draws = {
        float(tuner.rng(*key).random())
        for key in [(0,), (1,), (0, "weights"), (0, "order"), (0, 7)]
    }
    tuner.seed = 1
    draws.add(float(tuner.rng(0).random()))
    assert len(draws) == 6


def test_save_paths_differ_by_trial_and_stay_below_the_root():
    assert Forgetful().save_path(7) == "trials/7"


def test_defaults_of_the_class():
    tuner = Tuner()
    tuner.update_search_space({})
    tuner.trial_end(0, True)
    tuner.import_data([])
    assert tuner.state() is None
    with pytest.raises(NotImplementedError, match="generate_parameters"):
        tuner.generate_parameters(0)
    with pytest.raises(NotImplementedError, match="receive_trial_result"):
        tuner.receive_trial_result(0, {}, 1.0)
    with pytest.raises(NotImplementedError, match="restore"):
        tuner.restore({})


@pytest.mark.parametrize(
    "error, words",
    [
        (NoMoreTrialError("grid done"), "grid done"),
        (
            ParentFailed(4, "exit code 1", (4, 2)),
            "trial 4 cannot bequeath its weights: exit code 1 (4 <- 2)",
        ),
        (UnknownParent(9), "parameter_id 9"),
        (WaitTimeout((1, 2), 3.0), "trials 1, 2 had not ended after 3 s"),
        (SelfWait(5), "request 5 waits for itself"),
        (CycleRefused((1, 2, 3)), "1 -> 2 -> 3 -> 1"),
        (WaitNotAllowed("multiThread is false", "Set it."), "multiThread is false"),
        (WaitWithLock((1,), "tuner.py:12"), "tuner.py:12"),
    ],
)
def test_errors_are_sentences_with_a_hint(error, words):
    assert words in str(error)
    assert isinstance(error, TunerError)
    assert error.hint or isinstance(error, NoMoreTrialError)


def test_what_authors_read_of_an_error_is_one_line():
    """Mutations: its text has the form of the other packages' errors; its place is lost."""
    error = WaitWithLock((1,), "tuner.py:12")
    assert str(error) == f"{error.message} {error.hint}"
    assert error.where == "tuner.py:12"
    assert str(TunerError()) == ""


def test_an_authors_error_need_not_call_ours_when_it_is_made():
    class NoCandidate(NoMoreTrialError):
        def __init__(self, rung: int) -> None:
            self.rung = rung

    class Refused(TunerError):
        def __init__(self, text: str) -> None:
            Exception.__init__(self, text)

    assert str(NoCandidate(3)) == "3"
    assert NoCandidate(3).hint == ""
    assert str(Refused("not this one")) == "not this one"


def test_cancellation_passes_an_authors_except_exception():
    assert not isinstance(WaitCancelled(), Exception)
    assert "stopping" in str(WaitCancelled())
