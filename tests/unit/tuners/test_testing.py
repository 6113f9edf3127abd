"""What authors test their tuners with: gates, and a search without processes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tuners import (
    NoMoreTrialError,
    ParentFailed,
    SelfWait,
    Tuner,
    TunerError,
    UnknownParent,
    WaitCancelled,
    WaitNotAllowed,
    WaitTimeout,
)
from tuners.errors import VersionTimeout
from tuners.testing import OpenGate, RefusingGate, ScriptedGate, Search, with_gate


class Chain(Tuner):
    """Each request waits for the one before it."""

    def __init__(self):
        self.results = {}
        self.ends = {}
        self.again = []

    def generate_parameters(self, parameter_id, **kwargs):
        if parameter_id:
            self.wait_for(parameter_id - 1)
        return {"n": np.int64(parameter_id), "best": max(self.results.values(), default=0)}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        self.results[parameter_id] = value

    def trial_end(self, parameter_id, success, **kwargs):
        self.ends[parameter_id] = success

    def restore_proposal(self, parameter_id, parameters):
        self.again.append(parameter_id)

    def state(self):
        return {"results": list(self.results.items())}

    def restore(self, state):
        self.results = dict(state["results"])


def in_thread(call, *arguments, **named):
    """Starts a call; its thread, and a list that gets what it returned or raised."""
    outcome = []

    def run():
        try:
            outcome.append(call(*arguments, **named))
        except (TunerError, WaitCancelled) as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome


@pytest.mark.parametrize("kind", [OpenGate, ScriptedGate])
def test_what_wait_for_returns_and_raises(kind):
    gate = kind()
    gate.failed.update({1: "killed", 2: "exit code 3"})
    if kind is ScriptedGate:
        gate.open(3, 4)
    tuner = with_gate(Tuner(), gate)
    assert tuner.wait_for(4, 3) == [4, 3]
    assert tuner.wait_for(1, 4, 2, mode="any") == [4]
    with pytest.raises(ParentFailed, match=r"trial 2 .*: exit code 3"):
        tuner.wait_for(4, 2, 1)
    with pytest.raises(ParentFailed, match=r"trial 1 .*: killed"):
        tuner.wait_for(1, 2, mode="any")
    assert gate.waited == [(4, 3), (1, 4, 2), (4, 2, 1), (1, 2)]


def test_a_tuner_sees_the_versions_of_its_gate():
    gate = OpenGate(versions={"omega": 2})
    tuner = with_gate(Tuner(), gate)
    assert tuner.shared_store("omega").latest() == 2
    assert tuner.wait_for_version("omega", 5) == 5
    assert tuner.shared_store("omega").latest() == 5
    assert tuner.wait_for_version("alpha", by=1) == 1


def test_every_wait_is_refused():
    tuner = with_gate(Tuner(), RefusingGate())
    with pytest.raises(WaitNotAllowed, match="multiThread is false"):
        tuner.wait_for(1)
    with pytest.raises(WaitNotAllowed, match="multiThread is false"):
        tuner.wait_for_version("omega", 1)


def test_a_wait_goes_on_with_what_decides_it():
    gate = ScriptedGate()
    tuner = with_gate(Tuner(), gate)
    every, answer = in_thread(tuner.wait_for, 1, 2)
    either, first = in_thread(tuner.wait_for, 1, 2, mode="any")
    gate.until_blocked(1, threads=2)
    assert set(gate.blocked()) == {every, either}
    gate.open(2)
    either.join(60)
    assert first == [[2]]
    assert gate.blocked() == {every: (1, 2)}
    gate.fail(1, "killed")
    every.join(60)
    assert isinstance(answer[0], ParentFailed)
    assert gate.blocked() == {}


def test_a_version_is_waited_for_by_number_or_by_trial():
    gate = ScriptedGate()
    tuner = with_gate(Tuner(), gate)
    second, of_number = in_thread(tuner.wait_for_version, "omega", 2)
    by_trial, of_trial = in_thread(tuner.wait_for_version, "omega", by=7)
    by_another, none = in_thread(tuner.wait_for_version, "omega", by=8)
    gate.until_blocked(7)
    gate.until_blocked(8)
    assert gate.publish("omega", by=3) == 1
    assert gate.publish("omega", by=7) == 2
    gate.open(8)
    for thread in (second, by_trial, by_another):
        thread.join(60)
    assert (of_number, of_trial) == ([2], [2])
    assert isinstance(none[0], ParentFailed)


def test_a_cancelled_gate_stays_so():
    gate = ScriptedGate()
    tuner = with_gate(Tuner(), gate)
    thread, outcome = in_thread(tuner.wait_for, 1)
    gate.until_blocked(1)
    gate.cancel()
    thread.join(60)
    assert isinstance(outcome[0], WaitCancelled)
    with pytest.raises(WaitCancelled):
        tuner.wait_for(1)


def test_nothing_stands_still_for_ever():
    gate = ScriptedGate(patience_s=0.01)
    tuner = with_gate(Tuner(), gate)
    with pytest.raises(AssertionError, match=r"nobody ended the wait for trials \(1,\)"):
        tuner.wait_for(1)
    with pytest.raises(AssertionError, match="for a version"):
        tuner.wait_for_version("omega", 1)
    with pytest.raises(WaitTimeout):
        tuner.wait_for(1, timeout=0)
    with pytest.raises(VersionTimeout):
        tuner.wait_for_version("omega", 1, timeout=0)
    with pytest.raises(AssertionError, match="1 should wait for trial 3"):
        gate.until_blocked(3)


def test_a_search_step_by_step():
    search = Search(Chain())
    assert search.ask(0) == {"n": 0, "best": 0}
    assert (search.ask(1), search.ask(2)) == (None, None)
    assert (search.running, search.waiting) == ([0], [1, 2])
    search.end(0, 5)
    assert search.proposed[1] == {"n": 1, "best": 5}
    assert search.waiting == [2]
    search.end(1)  # it failed, so its child cannot inherit
    assert (search.running, search.waiting, search.abandoned) == ([], [], {2})
    assert search.tuner.ends == {0: True, 1: False}


def test_a_whole_search_in_the_order_of_a_seed():
    class Free(Chain):
        def generate_parameters(self, parameter_id, **kwargs):
            return {"n": parameter_id}

    def order(seed):
        search = Search(Free())
        search.run(lambda parameters, trial: float(trial), trials=30, at_once=6, seed=seed)
        return list(search.tuner.results)

    assert order(None) == list(range(30))
    assert order(1) == order(1) != order(2)
    assert sorted(order(1)) == list(range(30))


def test_trials_without_a_score_fail():
    search = Search(Chain())
    proposed = search.run(lambda parameters, trial: None if trial == 3 else 1.0, trials=6)
    assert list(proposed) == [0, 1, 2, 3]
    assert search.abandoned == {4, 5}


def test_who_says_not_now_is_asked_again_after_the_next_end():
    class Later(Chain):
        def generate_parameters(self, parameter_id, **kwargs):
            if parameter_id > len(self.results):
                raise NoMoreTrialError
            return {}

    search = Search(Later())
    search.ask(0)
    assert search.ask(1) is None
    assert search.later == [1]
    search.end(0, 1.0)
    assert search.running == [1]


def test_requests_that_said_not_now_take_their_place_among_those_at_once():
    most = 0

    class Alone(Chain):
        def generate_parameters(self, parameter_id, **kwargs):
            if parameter_id and not self.ends:
                raise NoMoreTrialError
            return {}

    def score(parameters, trial):
        nonlocal most
        most = max(most, len(search.running) + len(search.waiting) + len(search.later))
        return 1.0

    search = Search(Alone())
    assert len(search.run(score, trials=20, at_once=2)) == 20
    assert most == 2


def test_a_tuner_that_says_not_now_when_nothing_runs_is_done():
    class Three(Chain):
        def generate_parameters(self, parameter_id, **kwargs):
            if parameter_id > 2:
                raise NoMoreTrialError
            return {}

    search = Search(Three())
    assert list(search.run(lambda parameters, trial: 1.0, trials=20, at_once=2)) == [0, 1, 2]
    assert search.later == [3, 4]


def test_a_whole_search_goes_on_where_steps_have_led():
    search = Search(Chain())
    search.ask(0)
    search.end(0, 5)
    search.ask(1)
    assert list(search.run(lambda parameters, trial: 1.0, trials=4)) == [0, 1, 2, 3]


def test_only_a_trial_that_runs_can_end():
    search = Search(Chain())
    search.ask(0)
    search.ask(1)
    with pytest.raises(AssertionError, match="trial 5 does not run: it was never asked for"):
        search.end(5, 1.0)
    with pytest.raises(AssertionError, match="trial 1 does not run: its request waits"):
        search.end(1, 1.0)
    search.end(0)
    with pytest.raises(AssertionError, match="trial 0 does not run: it has ended"):
        search.end(0, 1.0)
    with pytest.raises(AssertionError, match=r"trial 1 does not run: .* without parameters"):
        search.publish("omega", by=1)
    assert search.tuner.ends == {0: False}
    assert search.tuner.results == {}


def test_no_trial_is_asked_for_twice():
    search = Search(Chain())
    search.ask(0)
    with pytest.raises(AssertionError, match="trial 0 was asked for already: it runs"):
        search.ask(0)


def test_a_trial_with_a_result_may_have_nothing_to_bequeath():
    search = Search(Chain())
    search.ask(0)
    search.ask(1)
    search.end(0, 5, reason="weights missing")
    assert search.tuner.results == {0: 5}
    assert search.tuner.ends == {0: True}
    assert search.gate.failed == {0: "weights missing", 1: "no trial"}


def test_children_of_a_request_that_raised_wait_no_longer():
    class Broken(Chain):
        def generate_parameters(self, parameter_id, **kwargs):
            parameters = super().generate_parameters(parameter_id)
            return parameters if parameter_id != 1 else 1 / 0

    search = Search(Broken())
    for number in range(3):
        search.ask(number)
    with pytest.raises(ZeroDivisionError):
        search.end(0, 5)
    assert (search.waiting, search.abandoned) == ([], {2})


def test_requests_go_on_one_at_a_time_and_in_order():
    class Siblings(Chain):
        order = ()

        def generate_parameters(self, parameter_id, **kwargs):
            if parameter_id:
                self.wait_for(0)
                before = self.order
                if parameter_id % 2:
                    self.wait_for(99 if parameter_id == 1 else 0)
                assert self.order is before  # nobody came between
                self.order = (*before, parameter_id)
            return {}

    search = Search(Siblings())
    search.ask(0)
    search.gate.asked.add(99)  # a trial of somebody else's
    search.gate.open(99)
    for number in range(40, 0, -1):
        search.ask(number)
    search.end(0, 1.0)
    assert search.tuner.order == tuple(range(1, 41))


def test_a_version_lets_those_go_on_who_wait_for_it():
    class Readers(Chain):
        def generate_parameters(self, parameter_id, **kwargs):
            store = self.shared_store("omega")
            if parameter_id:
                self.wait_for_version("omega", by=0)
            return store.pin({})

    search = Search(Readers())
    assert search.ask(0) == {}
    assert search.ask(1) is None
    assert search.publish("omega", by=0) == 1
    assert search.proposed[1] == {"shared_stores": {"omega": 1}}
    search.restart(Readers())
    assert search.ask(2) == {"shared_stores": {"omega": 1}}


def test_waits_that_cannot_end():
    class Wrong(Chain):
        def generate_parameters(self, parameter_id, **kwargs):
            self.wait_for(*self.parents)

    tuner = Wrong()
    for parents, error in (((9,), UnknownParent), ((0,), SelfWait)):
        tuner.parents = parents
        with pytest.raises(error):
            Search(tuner).ask(0)
    ring = Search(Chain())
    ring.gate.asked.add(0)  # a request that never was
    ring.ask(1)
    with pytest.raises(AssertionError, match=r"requests \[1\] wait for ever"):
        ring.run(lambda parameters, trial: 1.0, trials=0)


def test_what_a_tuner_raises_is_raised_where_it_was_asked():
    class Broken(Chain):
        def generate_parameters(self, parameter_id, **kwargs):
            return {"value": {1} if parameter_id else float("nan")}

    with pytest.raises(ValueError, match="JSON"):
        Search(Broken()).ask(0)
    with pytest.raises(TypeError, match="parameters must be JSON"):
        Search(Broken()).ask(1)


def test_a_request_that_does_neither_is_named():
    event = threading.Event()

    class Stuck(Chain):
        def generate_parameters(self, parameter_id, **kwargs):
            event.wait(60)

    with pytest.raises(AssertionError, match=r"requests \[0\] neither return nor wait"):
        Search(Stuck(), patience_s=0.01).ask(0)
    event.set()


def test_a_restart_tells_a_fresh_tuner_what_happened_since_its_state():
    search = Search(Chain())
    search.ask(0)
    search.keep_state()
    search.end(0, 5)
    search.ask(1)
    search.ask(2)
    search.restart(Chain())
    assert search.tuner.again == [1]
    assert search.tuner.results == {0: 5}
    assert search.waiting == [2]
    search.end(1, 9)
    assert search.proposed[2] == {"n": 2, "best": 9}
    search.restart(Chain())
    assert search.tuner.results == {0: 5, 1: 9}


class Repeated(Chain):
    """Keeps no state, so that its calls are repeated."""

    state = Tuner.state
    restore = Tuner.restore


def test_calls_are_repeated_in_a_tuner_without_a_state():
    search = Search(Repeated())
    for number in range(4):
        search.ask(number)
    search.end(0, 5)
    search.end(1)
    search.restart(Repeated())
    assert search.tuner.results == {0: 5}
    assert search.tuner.ends == {0: True, 1: False}
    assert (search.running, search.waiting, search.abandoned) == ([], [], {2, 3})
    assert search.ask(4) is None
    assert search.abandoned == {2, 3, 4}


def test_blocked_requests_and_those_that_said_not_now_are_repeated_as_well():
    class Later(Repeated):
        def generate_parameters(self, parameter_id, **kwargs):
            if parameter_id > 2 * len(self.results) + 2:
                raise NoMoreTrialError
            return super().generate_parameters(parameter_id)

    search = Search(Later())
    for number in range(4):
        search.ask(number)
    for _ in range(2):
        assert (search.running, search.waiting, search.later) == ([0], [1, 2], [3])
        search.restart(Later())
    search.end(0, 5)
    assert (search.running, search.waiting, search.later) == ([1], [2, 3], [])
    search.restart(Later())
    assert (search.running, search.waiting, search.later) == ([1], [2, 3], [])
    search.end(1, 9)
    assert search.proposed[2] == {"n": 2, "best": 9}


def test_the_earlier_answers_stand_and_must_come_again():
    class Moody(Repeated):
        calls = 0

        def generate_parameters(self, parameter_id, **kwargs):
            Moody.calls += 1
            if Moody.calls == 4:
                self.wait_for(0)
            return {"call": Moody.calls}

    search = Search(Moody())
    search.ask(0)
    search.restart(Moody())
    assert Moody.calls == 2
    assert search.proposed == {0: {"call": 1}}
    search.ask(1)
    Moody.calls = 2
    with pytest.raises(AssertionError, match=r"requests \[1\] were answered before, and are not"):
        search.restart(Moody())


def test_a_state_without_restore_is_an_error_of_the_tuner():
    class Half(Repeated):
        def state(self):
            return {}

    search = Search(Half())
    with pytest.raises(NotImplementedError, match="Half defines state but not restore"):
        search.restart(Half())
