"""Tuners that raise, return nonsense, crash, hang or cannot be built harm themselves only."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from tests.integration.tuner_host.conftest import Make
from tests.integration.tuner_host.fake_head import PATIENCE_S
from tests.integration.tuner_host.test_requests import source


def ended(pid: int) -> bool:
    """Gone, or only waiting to be reaped by somebody else."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_raising_in_every_method(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id == 1: raise ValueError("in generate")
                if parameter_id == 2: raise SystemExit("leaving")
                if parameter_id == 3: raise NoMoreTrialError
                if parameter_id == 4: raise type("NoMoreTrialError", (Exception,), {})("own")
                if parameter_id == 6: self.wait_for(5)
                return {}
            def receive_trial_result(self, *args, **kwargs): raise KeyError("in result")
            def trial_end(self, *args, **kwargs): raise OSError("in end")
        """)
    ).start()
    head.open(1, 2, 3, 4, 5, 6)
    error = head.wait_for(e.RequestFailed, 1)
    assert error.kind is e.RequestEnd.ERROR
    assert error.text.splitlines()[-1] == "ValueError: in generate"
    assert "tuner_host" not in error.text
    assert "my_tuner.py" in error.text
    assert head.wait_for(e.RequestFailed, 2).kind is e.RequestEnd.ERROR
    assert head.wait_for(e.RequestFailed, 3).kind is e.RequestEnd.NOT_NOW
    assert head.wait_for(e.RequestFailed, 4).kind is e.RequestEnd.NOT_NOW
    head.wait_for(e.WaitStarted, 6)
    head.deliver(5)
    assert "in result" in head.wait_for(e.ResultDelivered, 5).error
    assert "in end" in head.wait_for(e.EndDelivered, 5).error
    head.wait_for(e.Proposed, 6)  # the gate opened all the same
    head.do(a.TellSearchSpace("{}"))
    head.deliver(6)
    head.wait_for(e.EndDelivered, 6)


@pytest.mark.parametrize(
    "returned, words",
    [
        ("{'layers': [{}, {}, {'width': float('nan')}]}", "parameters.layers[2].width: NaN is not"),
        ("{'s': {1, 2}}", "parameters.s: a set is not JSON"),
        ("{1: 2}", "parameters: has the key 1 (int)"),
        ("None", "does generate_parameters lack a return"),
        ("'x' * 3000", "3,002 bytes of JSON, and 2,000 are allowed"),
        ("{'save_path': '../elsewhere'}", "parameters.save_path:"),
        ("{'save_path': 7}", "parameters.save_path: 7 is not a path"),
        ("{'restore_path': '/etc/passwd'}", "parameters.restore_path:"),
    ],
)
def test_nonsense_is_refused_by_place(make: Make, returned: str, words: str) -> None:
    head = make(
        source(f"""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs): return {returned}
            def receive_trial_result(self, *args, **kwargs): pass
        """),
        max_parameters_bytes=2000,
    ).start()
    head.open(0)
    failed = head.wait_for(e.RequestFailed, 0)
    assert failed.kind is e.RequestEnd.NONSENSE
    assert words in failed.text
    assert "\n" not in failed.text


@pytest.mark.parametrize(
    "body, words",
    [
        ("def __init__(self): raise ValueError('no data')", "ValueError: no data"),
        ("def __init__(self): raise SystemExit(3)", "SystemExit: 3"),
        ("def update_search_space(self, s): s['lr']", "KeyError: 'lr'"),
    ],
)
def test_a_tuner_that_cannot_be_built(make: Make, body: str, words: str) -> None:
    head = make(source(f"class T(Tuner):\n    {body}\n")).launch()
    lost = head.lost()
    assert lost.fatal
    assert words in lost.reason
    assert "my_tuner.py" in lost.reason
    assert "dispatcher/tuner_host" not in lost.reason
    time_out = time.monotonic() + PATIENCE_S
    while head.driver.check() or not ended(head.driver.pid or 0):
        assert time.monotonic() < time_out
    assert head.driver.check() == []  # told once


@pytest.mark.parametrize(
    "config, words",
    [
        ({"class_name": "my_tuner:Tee"}, "my_tuner has no class Tee"),
        ({"class_name": "my_tunr:T"}, "did you mean 'my_tuner'?"),
        ({"class_args": {"sede": 1}}, "T takes no argument 'sede'"),
        ({"class_name": "my_tuner:threading"}, "my_tuner has threading, which is no class"),
        ({"code_directory": "/nonexistent"}, "is not there"),
        ({"class_name": "", "builtin": "Randm"}, "Random"),
    ],
)
def test_a_class_that_cannot_be_found(make: Make, config: dict[str, object], words: str) -> None:
    head = make(source("class T(Tuner):\n    def __init__(self, seed=0): pass\n"), **config)
    lost = head.launch().lost()
    assert lost.fatal
    assert words in lost.reason


def test_a_module_that_does_not_import(make: Make) -> None:
    lost = make("import numpy\nx = 1 +\n").launch().lost()
    assert lost.fatal
    assert "my_tuner.py" in lost.reason
    assert "SyntaxError" in lost.reason


@pytest.mark.parametrize(
    "crime, words",
    [
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os._exit(7)", "exited with code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    ],
)
def test_a_crash_is_an_event_and_the_host_starts_again(make: Make, crime: str, words: str) -> None:
    head = make(
        source(f"""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id:
                    print("last words", flush=True)
                    {crime}
                return {{}}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(1)
    lost = head.lost()
    assert not lost.fatal
    assert words in lost.reason
    assert "last words" in lost.reason
    head.start()
    head.open(0)
    head.wait_for(e.Proposed, 0)


def test_a_tuner_that_hogs_the_interpreter_is_silent_and_not_dead(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                import re
                if parameter_id:
                    print("computing", flush=True)
                    re.match("(a*)*b", "a" * 200)  # holds the interpreter's lock for ages
                return {}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(1)
    deadline = time.monotonic() + PATIENCE_S
    while "computing" not in head.log():
        assert time.monotonic() < deadline
        assert not head.poll(0.02)
    head.open(0)
    assert not head.poll(0.3)
    began = time.monotonic()
    head.driver.close(2.0)
    assert time.monotonic() - began < PATIENCE_S
    assert ended(head.driver.pid or 0)


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.extended)])
def test_stopping_with_threads_on_a_foreign_event(make: Make, count: int) -> None:
    head = make(
        source("""
        class T(Tuner):
            never = threading.Event()
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id:
                    self.never.wait()
                return {}
            def receive_trial_result(self, *args, **kwargs): pass
            def _on_exit(self): print("on exit")
        """)
    ).start()
    head.open(*range(count, -1, -1))
    head.wait_for(e.Proposed, 0)
    head.driver.close(PATIENCE_S)
    assert ended(head.driver.pid or 0)
    assert "on exit" in head.log(), "it was not killed, as when the deadline has passed"


def test_our_waits_are_cancelled_before_on_exit(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                try:
                    self.wait_for(0)
                finally:
                    print("tidied", parameter_id)
            def receive_trial_result(self, *args, **kwargs): pass
            def _on_exit(self): print("on exit")
        """)
    ).start()
    head.open(1, 2, 3)
    for trial in (1, 2, 3):
        head.wait_for(e.WaitStarted, trial)
    head.driver.close(PATIENCE_S)
    *tidied, last = head.log().split("\n")[:-1]
    assert last == "on exit"
    # In any order: three threads end, and who comes first is the machine's business.
    assert sorted(tidied) == ["tidied 1", "tidied 2", "tidied 3"]


def test_on_exit_that_hangs_is_bounded(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs): return {}
            def receive_trial_result(self, *args, **kwargs): pass
            def _on_exit(self): threading.Event().wait()
        """)
    ).start()
    head.driver.close(1.0)
    assert ended(head.driver.pid or 0)


HEAD = """
import sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.integration.tuner_host.fake_head import FakeHead
head = FakeHead(Path({folder!r}), class_name="my_tuner:T", code_directory={code!r}).start()
head.open(1)
print(head.driver.pid, flush=True)
while True:
    head.poll()
"""


def test_no_process_is_left_when_the_head_is_killed(tmp_path: Path) -> None:
    (tmp_path / "my_tuner.py").write_text(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                import re
                print("computing", flush=True)
                re.match("(a*)*b", "a" * 200)  # no thread of ours gets the interpreter
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    )
    root = str(Path(__file__).parents[3])
    script = HEAD.format(root=root, folder=str(tmp_path / "e"), code=str(tmp_path))
    head = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert head.stdout is not None
    host = int(head.stdout.readline())
    deadline = time.monotonic() + PATIENCE_S
    log = tmp_path / "e" / "logs" / "tuner.log"
    while "computing" not in log.read_text():
        assert time.monotonic() < deadline
    os.kill(head.pid, signal.SIGKILL)
    head.wait()
    head.stdout.close()
    while not ended(host):
        assert time.monotonic() < deadline + PATIENCE_S, "the tuner host outlives its head"


def test_words_that_cannot_be_said_do_not_silence_the_host(make: Make) -> None:
    head = make(
        source("""
        class Rude(Exception):
            def __str__(self): raise ValueError("not even that")
        class NoMoreTrialError(Rude): pass
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                if parameter_id == 1: raise ValueError("a lone \\ud800 surrogate")
                if parameter_id == 2: raise Rude
                if parameter_id == 3: raise NoMoreTrialError
                if parameter_id == 4: self.wait_for(2**70)
                if parameter_id == 5: self.wait_for(-1)
                if parameter_id == 6: raise ParentFailed("father", "he said so")
                return {"\\ud800": 1}
            def receive_trial_result(self, *args, **kwargs): raise ValueError("\\udfff")
        """)
    ).start()
    head.open(1, 2, 3, 4, 5, 6, 7)
    assert "a lone \\ud800 surrogate" in head.wait_for(e.RequestFailed, 1).text
    assert "Rude" in head.wait_for(e.RequestFailed, 2).text
    assert head.wait_for(e.RequestFailed, 3).kind is e.RequestEnd.NOT_NOW
    for trial in (4, 5):
        assert head.wait_for(e.RequestFailed, trial).kind is e.RequestEnd.ABANDONED
    assert head.wait_for(e.RequestFailed, 6).parent is None
    assert head.wait_for(e.RequestFailed, 7).kind is e.RequestEnd.NONSENSE
    head.deliver(9)
    assert "\\udfff" in head.wait_for(e.ResultDelivered, 9).error
    head.wait_for(e.EndDelivered, 9)


def test_what_a_crashed_tuner_started_ends_with_it(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                import os, subprocess
                child = subprocess.Popen(["sleep", "600"])
                print(f"child {child.pid}.", flush=True)
                os._exit(1)
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(0)
    head.lost()
    child = int(head.log().split("child ")[1].split(".")[0])
    deadline = time.monotonic() + PATIENCE_S
    while not ended(child):
        assert time.monotonic() < deadline


def test_what_a_tuner_that_leaves_had_started_ends_with_it(make: Make) -> None:
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                import subprocess
                child = subprocess.Popen(["sleep", "600"])
                print(f"child {child.pid}.", flush=True)
                return {}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    head.open(0)
    head.wait_for(e.Proposed, 0)
    child = int(head.log().split("child ")[1].split(".")[0])
    head.driver.close(PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while not ended(child):
        assert time.monotonic() < deadline


def test_the_number_of_a_process_that_is_gone_is_left_alone(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system gives it to others, and each trial leads a group. Mutation: the group is killed
    again when the head closes, hours after the loss."""
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                import os
                os._exit(3)
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    pid = head.driver.pid
    head.open(0)
    head.lost()
    killed: list[int] = []
    kill = os.killpg
    monkeypatch.setattr(os, "killpg", lambda group, number: killed.append(group))
    head.driver.close(1.0)
    assert pid not in killed
    monkeypatch.setattr(os, "killpg", kill)


def test_a_log_never_exceeds_its_bound_whatever_a_tuner_prints(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of megabytes, as fast as it can: at no moment is more on the disk."""
    monkeypatch.setattr("dispatcher.tuner_host.driver.LOG_BYTES", 1_000_000)
    head = make(
        source("""
        class T(Tuner):
            def generate_parameters(self, parameter_id, **kwargs):
                import os
                line = b"x" * 99 + b"\\n"
                for _ in range(2_500):
                    os.write(1, line * 1_000)
                print("the last of it", flush=True)
                return {}
            def receive_trial_result(self, *args, **kwargs): pass
        """)
    ).start()
    logs = head.folder / "logs"
    head.open(0)
    most = 0
    done = False
    while not done:
        done = any(isinstance(event, e.Proposed) for event in head.poll(0.01))
        most = max(most, _bytes_of(logs))
    assert "the last of it" in head.log()
    assert 1_500_000 < most <= 4_000_000
    assert sorted(path.name for path in logs.glob("tuner.log*")) == [
        "tuner.log", "tuner.log.1", "tuner.log.2", "tuner.log.3"
    ]  # fmt: skip


def _bytes_of(logs: Path) -> int:
    total = 0
    for path in logs.glob("tuner.log*"):
        with contextlib.suppress(FileNotFoundError):  # renamed at this moment
            total += path.stat().st_size
    return total
