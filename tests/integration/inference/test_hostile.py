"""Code that misbehaves harms its own process only, and each of its ways gets one clear answer."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from dispatcher.errors import UserError
from dispatcher.inference import models, process
from dispatcher.inference.models import Models
from dispatcher.inference.process import ModelFailed
from dispatcher.operations.operation import Context, perform
from dispatcher.operations.table import INFER_INPUTS
from dispatcher.weight_keeper import holds
from tests.support.processes import wait_until
from tests.support.trained import REPOSITORY, USUAL, TrainedSearch


def infer(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"\ndef infer(model, request):\n{lines}\n"


#: What `infer` does, and a part of the error.
FAULTS = {
    "1 / 0": "infer failed:\nTraceback .*trial.py.*ZeroDivisionError",
    "raise SystemExit(3)": "infer failed: it ended by itself, with exit code 3",
    "raise SystemExit(0)": "infer failed: it ended by itself, with exit code 0",
    "raise SystemExit": "infer failed: it ended by itself, with exit code 0",
    "class Odd:\n    def tolist(self):\n        raise SystemExit(0)\nreturn Odd()": (
        "what infer returned is no answer: it ended by itself, with exit code 0"
    ),
    "os._exit(7)": "the process ended with exit code 7 during infer",
    "os.kill(os.getpid(), 11)": "the process was ended by SIGSEGV during infer",
    "os.kill(os.getpid(), 35)": "the process was ended by signal 35 during infer",
    "return object()": "what infer returned is no answer: the answer has a object",
    "return {(1, 2): 3}": "no answer: the answer has a key of type tuple",
    "return 'x' * 3_000_000": "no answer: the answer has 3,000,002 bytes, and 1,048,576",
    "return [0] * 300_000": "no answer: the answer has more than 200,000 values",
    "return np.zeros((10_000, 10_000), dtype=np.int8)": "an array of 100,000,000 values",
    "x = []\nx.append(x)\nreturn x": "nests more than 32 levels deep",
    "return bytearray(1 << 40)": "memory ran out",
    "print('told', os.environ['TOKEN'])\nos._exit(1)": "exit code 1",
    "import signal\nsignal.pause()": "infer took longer than 1 s, and was ended",
}


@pytest.mark.parametrize("body", FAULTS)
def test_each_fault_of_infer_has_its_answer(search: TrainedSearch, body: str) -> None:
    search.offer(infer(body))
    with pytest.raises(ModelFailed, match="(?s)" + FAULTS[body]) as failed:
        search.ask(1, {}, timeout_s=1.0 if "pause" in body else 30.0)
    assert failed.value.exit_code == 3
    assert "hunter-of-secrets" not in str(failed.value) + failed.value.hint
    assert len(str(failed.value)) < 20_000
    if "told" in body:
        assert "it printed: told [masked]" in failed.value.hint
    assert holds.held(search.place) == set()


def test_what_is_printed_is_no_answer(search: TrainedSearch) -> None:
    """Mutation: answers over stdout."""
    noise = "import sys\nfor _ in range(2000):\n    print('{\"value\": 666}' * 10)\n"
    search.offer(infer(noise + "sys.stderr.write('<script>\\x1b[2J')\nreturn 1"))
    told = search.ask(1, {})
    assert told.answer == 1
    assert told.printed.endswith("<script>\x1b[2J")
    assert len(told.printed) <= 16 << 10


def test_numbers_that_json_has_not_are_texts(search: TrainedSearch) -> None:
    search.offer(
        infer(
            "return {'a': float('nan'), 'b': np.float32('inf'), 'c': 1 << 200, 'd': '\\ud800',"
            " 1: '<b>', 'e': np.array([1.5, -np.inf])}"
        )
    )
    told = search.ask(1, {})
    assert told.answer == {
        "a": "NaN", "b": "Infinity", "c": str(1 << 200), "d": "?", "1": "<b>",
        "e": [1.5, "-Infinity"],
    }  # fmt: skip
    json.dumps(told.answer, allow_nan=False)


@pytest.mark.parametrize(
    "more,part",
    [
        ("\nraise RuntimeError('at import')\n" + infer("pass"), "cannot be imported"),
        ("\ndef load_model(p):\n    return 1 / 0\n" + infer("pass"), "load_model failed"),
        ("\ndef load_model(p):\n    raise SystemExit(0)\n" + infer("pass"), "it ended by itself"),
        ("\ninfer = 3\n", "has no function infer"),
        ("", "these trials have no demo"),
        ("\ndef infer(model:\n", "no Python"),
        ('\nINFER_INPUTS = {"x": {"kind": "magic"}}\n' + USUAL, "INFER_INPUTS cannot be read"),
        ("\nINFER_INPUTS = dict(x=1)\n" + USUAL, "INFER_INPUTS cannot be read"),
        ('\nINFER_INPUTS = {"a b": {"kind": "text"}}\n' + USUAL, "is no name of a field"),
        ("\nINFER_INPUTS = {}\n" + USUAL, "has 1 to 32 fields"),
        ("#" * (600 << 10), "more than 524,288 bytes"),
    ],
)
def test_code_without_a_demo_says_what_to_do(search: TrainedSearch, more: str, part: str) -> None:
    search.offer(more)
    with pytest.raises(UserError, match=part) as refused:
        search.ask(1, {})
    assert "trial.py" in (refused.value.where or str(refused.value))


def test_a_description_runs_nothing(search: TrainedSearch, tmp_path: Path) -> None:
    """Mutation: a page that imports the trials' code."""
    search.offer(f"\nopen({str(tmp_path / 'ran')!r}, 'w')\n" + USUAL)
    told = perform(INFER_INPUTS, Context(), experiment=str(search.place), trial=1)
    assert told.available
    assert not (tmp_path / "ran").exists()


def test_all_that_it_has_started_ends_with_it(search: TrainedSearch) -> None:
    """Mutation: only the leader is killed."""
    search.offer(
        infer(
            "import subprocess, sys\n"
            "def start(**more):\n"
            "    return subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'],"
            " **more).pid\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork() == 0:\n"
            "        open('daemon', 'w').write(str(os.getpid()))\n"
            "        import signal; signal.pause()\n"
            "    os._exit(0)\n"
            "os.wait()\n"
            "while not os.path.exists('daemon') or not open('daemon').read():\n"
            "    pass\n"
            "return [start(), start(start_new_session=True), int(open('daemon').read())]"
        )
    )
    told = search.ask(1, {})
    assert not any(psutil.pid_exists(pid) and alive(pid) for pid in told.answer)
    search.offer(
        infer("import signal\nwhile True:\n    if os.fork() == 0:\n        signal.pause()")
    )
    with pytest.raises(ModelFailed, match="processes, and was ended; 64 are allowed"):
        search.ask(1, {})


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def test_memory_of_several_processes_is_bounded(search: TrainedSearch) -> None:
    """Mutation: a bound for each process alone, which several go round together."""
    search.offer(
        infer("for _ in range(3):\n    os.fork()\nx = bytearray(90 << 20)\nimport signal\n"
              "signal.pause()")
    )  # fmt: skip
    with pytest.raises(ModelFailed, match="MiB of memory, and was ended; 400 MiB are allowed"):
        search.ask(1, {}, Context(model_memory=400 << 20))


def test_processes_that_leave_their_parents_are_counted(
    search: TrainedSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: only children of children, which one that forks twice is not."""
    monkeypatch.setattr(process, "MOST_PROCESSES", 4)
    twice = (
        "import signal\nfor _ in range(6):\n    if os.fork() == 0:\n        if os.fork() == 0:\n"
        "            %s\n        os._exit(0)\n    os.wait()\n"
        "signal.sigtimedwait([], %s)\nreturn 1"
    )
    search.offer(infer(twice % ("pass", 1)))
    assert search.ask(1, {}).answer == 1  # they have ended
    search.offer(infer(twice % ("signal.pause()", 60)))
    with pytest.raises(ModelFailed, match=r"the model has \d processes, and was ended; 4 are"):
        search.ask(1, {})


def test_one_that_fails_stays_warm_and_one_that_dies_is_replaced(search: TrainedSearch) -> None:
    search.offer(
        infer("if request.get('die'):\n    os._exit(1)\nif request.get('fail'):\n    1 / 0\n"
              "return os.getpid()")
    )  # fmt: skip
    kept = Models(keep_s=30.0)
    context = Context(models=kept)
    try:
        first = search.ask(1, {}, context).answer
        with pytest.raises(ModelFailed, match="ZeroDivisionError"):
            search.ask(1, {"fail": True}, context)
        assert search.ask(1, {}, context).answer == first
        with pytest.raises(ModelFailed, match="exit code 1"):
            search.ask(1, {"die": True}, context)
        assert search.ask(1, {}, context).answer != first
    finally:
        kept.close()


#: What a model does once it has answered, and nobody asks it.
IDLE = {
    "time": "while True:\n    pass",
    "memory": "for _ in range(5):\n    if os.fork() == 0:\n        x = bytearray(90 << 20)\n"
    "        signal.pause()",
    "processes": "for _ in range(6):\n    if os.fork() == 0:\n        signal.pause()",
}


@pytest.mark.parametrize("what", IDLE)
def test_one_that_nobody_asks_keeps_its_bounds(
    search: TrainedSearch, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Mutation: only the kernel bounds a warm model, which runs on for a minute."""
    monkeypatch.setattr(models, "IDLE_CPU_S", 0.5)
    monkeypatch.setattr(models, "LOOK_S", 0.1)
    monkeypatch.setattr(process, "MOST_PROCESSES", 5 if what == "processes" else 64)
    body = "\n".join(f"    {line}" for line in IDLE[what].splitlines())
    search.offer(
        "\nimport signal, threading\ndef later():\n    while not os.path.exists('go'):\n"
        f"        threading.Event().wait(0.01)\n{body}\n"
        + infer("threading.Thread(target=later, daemon=True).start()\nreturn os.getpid()")
    )
    kept = Models(keep_s=3_600.0)
    try:
        pid = search.ask(1, {}, Context(models=kept, model_memory=400 << 20)).answer
        assert alive(pid)
        (search.code / "go").touch()
        wait_until(lambda: not alive(pid), f"it was ended for its {what}")
        wait_until(lambda: holds.held(search.place) == set(), "nothing is held")
    finally:
        kept.close()
        (search.code / "go").unlink(missing_ok=True)


def test_one_that_keeps_its_bounds_stays(
    search: TrainedSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: what it took to load counts as taken while nobody asks."""
    monkeypatch.setattr(models, "LOOK_S", 0.01)
    monkeypatch.setattr(models, "IDLE_CPU_S", 0.1)
    search.offer(
        "\nimport time\nwhile time.process_time() < 1:\n    pass\n" + infer("return os.getpid()")
    )
    kept = Models(keep_s=3_600.0)
    looks = []
    fits = process.ModelProcess.fits_idle

    def seen(one: process.ModelProcess, cpu_s: float) -> bool:
        looks.append(fits(one, cpu_s))
        return looks[-1]

    monkeypatch.setattr(process.ModelProcess, "fits_idle", seen)
    try:
        first = search.ask(1, {}, Context(models=kept)).answer
        for turn in range(1, 4):
            wait_until(partial(lambda many: len(looks) >= many, 5 * turn), "it was looked at")
            assert search.ask(1, {}, Context(models=kept)).answer == first
        assert all(looks)
    finally:
        kept.close()


def test_an_answer_is_that_of_the_process_that_was_asked(search: TrainedSearch) -> None:
    """Mutation: a process that was forked answers, too, and its answer is the next one's."""
    search.offer(
        "\n\ndef load_model(parameters):\n    os.fork()\n    return os.getpid()\n"
        + infer("forked = os.fork()\nreturn [request['n'], forked == 0, model == os.getpid()]")
    )
    kept = Models(keep_s=30.0)
    try:
        for number in range(4):
            found = search.ask(1, {"n": number}, Context(models=kept))
            assert found.answer == [number, False, True]
    finally:
        kept.close()


def test_what_comes_before_it_was_asked_is_no_answer(search: TrainedSearch) -> None:
    """Mutation: what lies in the line is taken for the answer to the next request."""
    search.offer(infer(_INTO_THE_LINE_LATER))
    kept = Models(keep_s=30.0)
    try:
        search.ask(1, {}, Context(models=kept))
        wait_until((search.code / "said").exists, "it has said what nobody asked for")
        with pytest.raises(ModelFailed, match="the process answers what nobody asked for"):
            search.ask(1, {}, Context(models=kept))
    finally:
        kept.close()


def test_a_text_that_is_none_is_refused(search: TrainedSearch) -> None:
    with pytest.raises(UserError, match="a character that is none of Unicode"):
        search.ask(1, {"deep": [{"text": "\udcff"}]})


def test_it_ends_when_whoever_asks_is_killed(search: TrainedSearch) -> None:
    """Mutation: a process that only notices between two requests."""
    search.offer(infer("open('asked', 'w').close()\nimport signal\nsignal.pause()"))
    asking = subprocess.Popen(
        [sys.executable, "-m", "dispatcher.cli", "infer", "1", "-e", str(search.place),
         "--timeout", "300"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    me = psutil.Process(asking.pid)
    wait_until(lambda: len(me.children()) == 2, "a process for the model, and its warden")
    (model,) = (one for one in me.children() if "inference" in " ".join(one.cmdline()))
    wait_until(lambda: holds.held(search.place) == {1}, "it holds the weights")
    wait_until((search.code / "asked").exists, "it is being asked")
    asking.send_signal(signal.SIGKILL)
    asking.wait()
    wait_until(lambda: not alive(model.pid), "it has ended")
    wait_until(lambda: not holds.held(search.place), "nothing is held")
    assert holds.held(search.place) == set()


def test_weights_that_are_gone_say_what_to_do(search: TrainedSearch, tmp_path: Path) -> None:
    weights = search.place / "weights"
    kept = tmp_path / "kept"
    shutil.copytree(weights, kept)
    try:
        (manifest,) = weights.rglob("0/manifest.json")
        manifest.write_bytes(manifest.read_bytes() + b" ")
        with pytest.raises(UserError, match="not there as they were committed"):
            search.ask(0, {})
        shutil.rmtree(manifest.parent)
        with pytest.raises(UserError, match="not there as they were committed") as refused:
            search.ask(0, {})
        assert refused.value.hint
    finally:
        shutil.rmtree(weights)
        shutil.copytree(kept, weights)


def test_code_that_is_elsewhere_says_so(search: TrainedSearch, tmp_path: Path) -> None:
    (search.code / "trial.py").rename(tmp_path / "trial.py")
    with pytest.raises(UserError, match="the trials' code is not on this machine") as refused:
        search.ask(1, {})
    assert "where the experiment was started" in refused.value.hint


def test_answers_of_another_kind_end_the_process(search: TrainedSearch) -> None:
    """Mutation: a length that is believed."""
    search.offer(infer(_INTO_THE_LINE))
    with pytest.raises(ModelFailed, match="the process answers what"):
        search.ask(1, {}, timeout_s=10.0)


_INTO_THE_LINE = """\
import socket
for fd in range(3, 50):
    try:
        one = socket.socket(fileno=os.dup(fd))
        one.send(b"\\xff\\xff\\xff\\xff{}")
    except OSError:
        continue
import signal
signal.pause()"""

_INTO_THE_LINE_LATER = """\
import socket, threading
def later():
    for fd in range(3, 50):
        try:
            one = socket.socket(fileno=os.dup(fd))
            one.send(b'\\0\\0\\0\\x0b{"value":1}')
        except OSError:
            continue
    open('said', 'w').close()
threading.Timer(0.3, later).start()"""
