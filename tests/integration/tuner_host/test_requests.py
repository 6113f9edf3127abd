"""Requests: they overlap, enter in order, wait without harm, and end as they should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import FailReason, Verdict
from tests.integration.tuner_host.conftest import Make

BASE = """
import threading
from tuners import Tuner, ParentFailed, NoMoreTrialError, WaitCancelled, WaitTimeout
"""


def source(body: str) -> str:
    import textwrap

    return BASE + textwrap.dedent(body)


def test_what_was_said_before_the_tuner_was_there_comes_first(make: Make, tmp_path: Path) -> None:
    """A search space that is changed twice while a tuner is built must end as it was changed last.
    Here the tuner holds the interpreter until it is ready, while the second change arrives.
    Mutation: what is heard once it is ready overtakes what waits."""
    head = make(
        source(f"""
        import ctypes, os, sys
        from tests.support import hold
        class T(Tuner):
            seen = []
            def update_search_space(self, search_space):
                if "n" in search_space:
                    self.seen.append(search_space["n"]["_value"][0])
                    return
                hold.until({str(tmp_path / "go")!r})
                sys.setswitchinterval(600)  # nobody is let in until it blocks
                open({str(tmp_path / "held")!r}, "w").close()
                ctypes.PyDLL(None).usleep(500_000)
            def generate_parameters(self, parameter_id, **kwargs):
                sys.setswitchinterval(0.005)
                return {{"seen": list(self.seen)}}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).launch()

    def tell(n: int) -> None:
        head.do(a.TellSearchSpace(json.dumps({"n": {"_type": "choice", "_value": [n]}})))

    while not head.link.connected:
        head.poll(0.02)
    tell(1)
    head.poll(0.2)
    (tmp_path / "go").touch()
    while not (tmp_path / "held").exists():
        head.poll(0.02)
    tell(2)
    head.deliver(9)
    head.wait_for(e.EndDelivered, 9)  # after all that was told before
    head.open(0)
    assert json.loads(head.wait_for(e.Proposed, 0).parameters) == {"seen": [1, 2]}


def test_two_calls_meet_at_a_barrier(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            barrier = threading.Barrier(2, timeout=30)
            def generate_parameters(self, parameter_id, **kwargs):
                self.barrier.wait()
                return {"id": parameter_id}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(0, 1)
    assert json.loads(head.wait_for(e.Proposed, 0).parameters) == {"id": 0}
    assert json.loads(head.wait_for(e.Proposed, 1).parameters) == {"id": 1}


def test_requests_enter_in_the_order_of_their_ids(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            seen = []
            def generate_parameters(self, parameter_id, **kwargs):
                self.seen.append(parameter_id)
                if parameter_id < 199:
                    self.wait_for(parameter_id + 1000)
                return {"seen": self.seen}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(*range(200))
    assert json.loads(head.wait_for(e.Proposed, 199).parameters)["seen"] == list(range(200))


def test_authors_own_events(make: Make) -> None:
    head = make(
        source("""
        class T:  # no base class, nothing called on it: an old tuner
            def __init__(self, n):
                self.events = {i: threading.Event() for i in range(n)}
            def update_search_space(self, search_space): pass
            def generate_parameters(self, parameter_id):
                if parameter_id:
                    self.events[parameter_id - 1].wait()
                return {"id": parameter_id}
            def receive_trial_result(self, parameter_id, parameters, reward):
                self.events[parameter_id].set()
        """),
        class_args={"n": 8},
    ).start()
    head.open(*range(8))
    seen = {head.wait_for(e.ForeignWaitSeen).trial for _ in range(7)}
    assert seen == set(range(1, 8))
    for trial in range(8):
        head.wait_for(e.Proposed, trial)
        head.deliver(trial)
        head.wait_for(e.EndDelivered, trial)


WAITER = source("""
    class T(Tuner):
        def generate_parameters(self, parameter_id, **kwargs):
            if parameter_id == 0:
                return {}
            return {"granted": self.wait_for(0)}
        def receive_trial_result(self, *args, **kwargs): pass
    """)


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_blocked_on_one_are_let_go(make: Make, count: int) -> None:
    head = make(WAITER).start()
    head.open(0)
    head.wait_for(e.Proposed, 0)
    head.open(*range(1, count + 1))
    blocked = {head.wait_for(e.WaitStarted).trial for _ in range(count)}
    assert blocked == set(range(1, count + 1))
    assert not [one for one in head.events if isinstance(one, e.Proposed)]
    status = Path(f"/proc/{head.driver.pid}/status").read_text()
    resident_kib = int(status.split("VmRSS:")[1].split()[0])
    assert resident_kib < 64 * 1024 + 32 * count
    head.deliver(0)
    answers = [head.wait_for(e.Proposed) for _ in range(count)]
    assert {answer.trial for answer in answers} == blocked
    assert all(json.loads(answer.parameters) == {"granted": [0]} for answer in answers)


def test_the_gate_opens_after_result_and_end_returned(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def __init__(self): self.calls = []
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id:
                    self.wait_for(0)
                return {"calls": list(self.calls)}
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
                self.calls.append(["result", parameter_id, value])
            def trial_end(self, parameter_id, success, **kwargs):
                self.calls.append(["end", parameter_id, success])
        """)
    ).start()
    head.open(0, 1)
    head.wait_for(e.WaitStarted, 1)
    head.deliver(0, {"default": 0.5})
    child = json.loads(head.wait_for(e.Proposed, 1).parameters)
    assert child == {"calls": [["result", 0, {"default": 0.5}], ["end", 0, True]]}
    assert [type(one).__name__ for one in head.events if getattr(one, "trial", None) == 0] == [
        "Proposed",
        "ResultDelivered",
        "EndDelivered",
    ]


def test_a_result_delivered_before_is_not_repeated(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs): return {}
            def receive_trial_result(self, *args, **kwargs): print("result")
            def trial_end(self, *args, **kwargs): print("end")
        """)
    ).start()
    head.deliver(3, 1.0, result_delivered=True)
    head.wait_for(e.EndDelivered, 3)
    assert "result" not in head.log()
    assert "end" in head.log()
    assert not head.events


def test_results_name_the_object_that_was_generated(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                self.own = {"t": (1, 2)}
                return self.own
            def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
                print("same", parameters is self.own)
        """)
    ).start()
    head.open(0)
    head.wait_for(e.Proposed, 0)
    head.deliver(0, parameters={"t": [1, 2]})
    head.wait_for(e.EndDelivered, 0)
    assert "same True" in head.log()


def test_failed_unknown_and_circular_parents(make: Make) -> None:
    head = make(WAITER.replace("self.wait_for(0)", "self.wait_for(parameter_id - 1)")).start()
    head.open(1, 2, 3, 4, 5, 6)
    waits = {trial: head.wait_for(e.WaitStarted, trial) for trial in (1, 2, 3, 4, 5, 6)}
    head.answer(waits[1], "failed", parent=0, reason=FailReason.WEIGHTS_MISSING, chain=(9,))
    head.answer(waits[3], "unknown", parent=2)
    head.answer(waits[4], "cycle", chain=(4, 3, 4))
    head.answer(waits[5], "granted", parents=(4,))

    failed = head.wait_for(e.RequestFailed, 1)
    assert (failed.kind, failed.parent) == (e.RequestEnd.ABANDONED, 0)
    assert "weights missing (0 <- 9)" in failed.text
    unknown = head.wait_for(e.RequestFailed, 3)
    assert (unknown.kind, unknown.parent) == (e.RequestEnd.ABANDONED, 2)
    cycle = head.wait_for(e.RequestFailed, 4)
    assert cycle.kind is e.RequestEnd.ERROR
    assert "4 -> 3 -> 4" in cycle.text
    assert "my_tuner.py" in cycle.text
    assert json.loads(head.wait_for(e.Proposed, 5).parameters) == {"granted": [4]}
    head.do(a.OpenGate(1, Verdict(FailReason.NO_TRIAL)))
    assert head.wait_for(e.RequestFailed, 2).parent == 1
    head.fail(5, FailReason.KILLED)
    assert "killed" in head.wait_for(e.RequestFailed, 6).text


def test_a_wait_for_itself_is_the_authors_error(make: Make) -> None:
    head = make(WAITER.replace("self.wait_for(0)", "self.wait_for(parameter_id)")).start()
    head.open(4)
    failed = head.wait_for(e.RequestFailed, 4)
    assert failed.kind is e.RequestEnd.ERROR
    assert "SelfWait" in failed.text


def test_all_and_any_of_several_parents(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id < 10:
                    return {}
                mode = "all" if parameter_id < 20 else "any"
                return {"granted": self.wait_for(0, 1, mode=mode)}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(0, 1, 10, 20)
    head.wait_for(e.WaitStarted, 10)
    head.wait_for(e.WaitStarted, 20)
    head.deliver(1)
    assert json.loads(head.wait_for(e.Proposed, 20).parameters) == {"granted": [1]}
    assert not [one for one in head.events if one == e.Proposed(10, '{"granted":[0,1]}')]
    head.deliver(0)
    assert json.loads(head.wait_for(e.Proposed, 10).parameters) == {"granted": [0, 1]}


def test_a_parent_of_an_earlier_process_is_asked_about_again(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                return {"granted": self.wait_for(3, 7)} if parameter_id > 7 else {}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(7, 8)  # 3 ended before this process began: only the head knows
    first = head.wait_for(e.WaitStarted, 8)
    head.deliver(7)
    again = head.wait_for(e.WaitStarted, 8)
    assert again.ticket > first.ticket
    head.answer(first, "unknown", parent=3)  # an answer to the wait that is over
    head.answer(again, "granted", parents=(3, 7))
    assert json.loads(head.wait_for(e.Proposed, 8).parameters) == {"granted": [3, 7]}


def test_cancelled_while_waiting_and_when_it_waits_again(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                for attempt in range(3):
                    try:
                        self.wait_for(0)
                    except WaitCancelled as cancelled:
                        print("cancelled", attempt)
                self.wait_for(0)
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(1)
    head.wait_for(e.WaitStarted, 1)
    head.do(a.CancelRequest(1))
    assert head.wait_for(e.RequestFailed, 1).kind is e.RequestEnd.CANCELLED
    assert "cancelled 2" in head.log()


def test_a_timeout_gives_the_wait_up(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id == 0:
                    return {}
                try:
                    self.wait_for(0, timeout=0.01)
                except WaitTimeout as late:
                    return {"late": list(late.parents)}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(0, 1)
    wait = head.wait_for(e.WaitStarted, 1)
    assert head.wait_for(e.WaitGivenUp, 1).ticket == wait.ticket
    assert json.loads(head.wait_for(e.Proposed, 1).parameters) == {"late": [0]}


def test_waiting_with_the_lock_and_outside_a_request(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id == 1:
                    with self.lock:
                        self.wait_for(0)
                caught = []
                def elsewhere():
                    try:
                        self.wait_for(0)
                    except Exception as error:
                        caught.append(str(error))
                thread = threading.Thread(target=elsewhere, name="helper")
                thread.start()
                thread.join()
                return {"caught": caught}
            def receive_trial_result(self, *args, **kwargs): self.wait_for(0)
        """)
    ).start()
    head.open(1, 2)
    failed = head.wait_for(e.RequestFailed, 1)
    assert failed.kind is e.RequestEnd.ERROR
    assert "while holding self.lock" in failed.text
    (caught,) = json.loads(head.wait_for(e.Proposed, 2).parameters)["caught"]
    assert "'helper' runs no generate_parameters" in caught
    head.deliver(2)
    assert "WaitNotAllowed" in head.wait_for(e.ResultDelivered, 2).error


def test_serial_tuners_are_called_one_at_a_time(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def __init__(self): self.threads = set()
            def generate_parameters(self, parameter_id, **kwargs):
                self.threads.add(threading.current_thread().name)
                if parameter_id == 5:
                    self.wait_for(0)
                return {"threads": sorted(self.threads)}
            def receive_trial_result(self, *args, **kwargs):
                self.threads.add(threading.current_thread().name)
        """),
        multi_thread=False,
    ).start()
    head.open(0)
    head.wait_for(e.Proposed, 0)
    head.deliver(0)
    head.open(1, 5)
    assert json.loads(head.wait_for(e.Proposed, 1).parameters) == {"threads": ["MainThread"]}
    failed = head.wait_for(e.RequestFailed, 5)
    assert failed.kind is e.RequestEnd.ERROR
    assert "multiThread is false" in failed.text


def test_what_stacks_tell(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            never = threading.Event()
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id == 1:
                    self.wait_for(0)
                if parameter_id == 2:
                    self.lock.acquire()
                    self.never.wait()  # the line to be named
                return {}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(1, 2)
    head.wait_for(e.WaitStarted, 1)
    seen = head.wait_for(e.ForeignWaitSeen, 2)
    assert seen.place.startswith("`self.never.wait()  # the line".replace("  ", " "))
    head.do(a.AskStacks((1, 2, 99)))
    stacks = head.wait_for(e.StacksReported).stacks
    assert set(stacks) == {1, 2}
    assert stacks[1].startswith("request 1 waits for 0 in wait_for")
    assert "the line to be named" in stacks[2].splitlines()[0]
    assert "self.lock is held by request 2" in stacks[1]
    assert "tuner_host" not in stacks[2]


def test_a_lock_that_an_exception_left_locked_is_named(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def __init__(self): self.guard = threading.Lock()
            def generate_parameters(self, parameter_id, **kwargs):
                self.guard.acquire()
                if parameter_id == 1:
                    raise KeyError("forgot to release")
                return {}
            def receive_trial_result(self, *args, **kwargs): self.guard.acquire()
        """)
    ).start()
    head.open(1)
    head.wait_for(e.RequestFailed, 1)
    head.open(2)
    head.wait_for(e.ForeignWaitSeen, 2)
    head.deliver(3)
    head.wait_for(e.DeliveryStandsStill, 3)
    head.do(a.AskStacks((2, 3)))
    stacks = head.wait_for(e.StacksReported).stacks
    assert "self.guard is held" in stacks[2]
    assert "generate_parameters(1) raised KeyError: 'forgot to release'" in stacks[2]
    assert "receive_trial_result" in stacks[3]
    assert stacks[3].startswith("the delivery of trial 3 is at ")
