"""The agent's parts that need no process."""

from __future__ import annotations

import dataclasses
import errno
import os

import pytest

from tests.support.workers import LOCAL, agent_config
from trial_runtime import facts, wire
from trial_runtime.agent.attempt import Exit
from trial_runtime.agent.attempts.ending import ending_of
from trial_runtime.agent.attempts.preparing import Unpreparable, located, make_room, session_for
from trial_runtime.agent.base.logs import LogFile, make_pipe
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import TrialSpec, encode_config, read_config
from trial_runtime.agent.link import outbox
from trial_runtime.agent.resources import oom
from trial_runtime.agent.runners.calling import attempt_call, invoke
from trial_runtime.agent.runners.environment import resolve_references
from trial_runtime.agent.runners.scripts import script_of
from trial_runtime.fact_wire import decode_fact
from trial_runtime.facts import EndReason
from trial_runtime.masking import Mask

SECRET = "planted-secret-0123456789abcdef"


def metric(n):
    return facts.MetricReported(1, 1, n, "1")


class TestOutbox:
    def test_words_leave_in_order_and_stay_until_acknowledged(self, tmp_path):
        box = outbox.Outbox(str(tmp_path / "spool"))
        for n in range(1, outbox.MESSAGES_PER_FRAME + 11):
            box.add(metric(n), urgent=False)
        first = box.next_frame()
        assert (first.first, len(first.messages)) == (1, outbox.MESSAGES_PER_FRAME)
        assert box.next_frame() == first  # not marked as sent: offered again
        box.mark_sent(first)
        second = box.next_frame()
        assert (second.first, len(second.messages)) == (outbox.MESSAGES_PER_FRAME + 1, 10)
        box.mark_sent(second)
        assert box.next_frame() is None
        box.acknowledge(5)
        box.rewind()
        assert decode_fact(box.next_frame().messages[0]).seq == 6
        box.acknowledge(box.newest)
        assert box.next_frame() is None
        assert box.attempts() == set()

    def test_the_spool_holds_what_was_not_acknowledged(self, tmp_path):
        path = str(tmp_path / "spool")
        box = outbox.Outbox(path)
        for n in range(1, 6):
            box.add(metric(n), urgent=False)
        box.acknowledge(2)
        box.spool()
        box.add(metric(6), urgent=False)
        box.spool()
        box.spool()
        again = outbox.Outbox(path)
        assert [decode_fact(w).seq for w in again.next_frame().messages] == [3, 4, 5, 6]
        assert again.attempts() == {(1, 1)}
        again.acknowledge(again.newest)
        assert not os.path.exists(path)

    def test_a_torn_spool_keeps_what_is_whole(self, tmp_path):
        path = tmp_path / "spool"
        box = outbox.Outbox(str(path))
        for n in (1, 2):
            box.add(metric(n), urgent=False)
        box.spool()
        path.write_bytes(path.read_bytes()[:-1])
        again = outbox.Outbox(str(path))
        assert [decode_fact(w).seq for w in again.next_frame().messages] == [1]

    def test_it_is_full_at_its_bound_and_drops_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setattr(outbox, "MAX_BYTES", 1000)
        box = outbox.Outbox(str(tmp_path / "spool"))
        while not box.full:
            box.add(metric(1), urgent=False)
        count = box.newest
        box.acknowledge(count // 2)
        assert not box.full
        assert len(box.next_frame().messages) == count - count // 2

    def test_logs_leave_with_the_end_they_belong_to_until_it_is_acknowledged(self, tmp_path):
        """Mutations: they come with another frame, once only, or stay for ever."""
        box = outbox.Outbox(str(tmp_path / "spool"))
        box.add(metric(1), urgent=False)
        box.add(ENDED, urgent=True, logs=logs_of(3, b"first"))
        box.add(metric(1), urgent=False)
        box.add(ENDED, urgent=True, logs=logs_of(4, b"second"))
        assert [each.trial for each in box.next_frame().logs] == [3, 4]
        box.mark_sent(box.next_frame())
        box.rewind()
        box.acknowledge(2)
        assert [each.trial for each in box.next_frame().logs] == [4]
        box.acknowledge(4)
        box.add(metric(1), urgent=False)
        assert box.next_frame().logs == []

    def test_logs_that_nobody_takes_never_hold_up_a_trial(self, tmp_path, monkeypatch):
        """Mutations: the outbox is full of them; all are kept; results go with them."""
        monkeypatch.setattr(outbox, "MAX_LOG_BYTES", 1000)
        monkeypatch.setattr(outbox, "MAX_BYTES", 1 << 14)
        box = outbox.Outbox(str(tmp_path / "spool"))
        for trial in range(100):
            box.add(ENDED, urgent=True, logs=logs_of(trial, b"x" * 300))
        assert not box.full
        frame = box.next_frame()
        assert len(frame.messages) == 100
        assert [each.trial for each in frame.logs] == [97, 98, 99]

    def test_a_frame_with_logs_is_no_larger_than_others(self, tmp_path):
        box = outbox.Outbox(str(tmp_path / "spool"))
        most = wire.MAX_LOG_END_BYTES
        for trial in range(64):
            box.add(ENDED, urgent=True, logs=logs_of(trial, b"x" * most))
        frame = box.next_frame()
        assert sum(each.nbytes for each in frame.logs) <= outbox.BYTES_PER_FRAME + most
        assert len(frame.messages) == len(frame.logs)


ENDED = facts.AttemptEnded(3, 1, EndReason.FINISHED)


def logs_of(trial, data):
    return wire.LogEnds(trial, 1, [wire.LogEnd("stdout", data)])


@pytest.mark.parametrize(
    "needs",
    [
        {"save_path": "a"},
        {"restore_path": "a"},
        {"versions": (facts.Pinned("s", 1, "p", "d"),)},
    ],
)
def test_a_trial_with_weights_ends_at_once_where_there_is_no_root(tmp_path, needs):
    """Mutation: it trains for a day, and its weights go with the pod."""
    config = agent_config(tmp_path, no_weights="pods see no weights root")
    plain = facts.StartAttempt(LOCAL, 1, 1, "{}")
    assert session_for(config, plain, "ipc:///x").save_path is None
    with pytest.raises(Unpreparable, match="pods see no weights root"):
        session_for(config, dataclasses.replace(plain, **needs), "ipc:///x")


def judge(outcome, **changes):
    told = {
        "stop_reason": None,
        "out_of_memory": False,
        "by_bash": True,
        "spoke": False,
        "tail": "",
        **changes,
    }
    return ending_of(outcome, **told).reason


@pytest.mark.parametrize(
    "outcome, changes, reason",
    [
        (Exit(code=0), {}, EndReason.FINISHED),
        (Exit(code=1), {}, EndReason.FAILED),
        (Exit(signal=11), {}, EndReason.SIGNALLED),
        (Exit(signal=9), {}, EndReason.SIGNALLED),
        (Exit(signal=9), {"out_of_memory": True}, EndReason.OUT_OF_MEMORY),
        (Exit(code=137), {"out_of_memory": True}, EndReason.OUT_OF_MEMORY),
        (Exit(code=137), {"out_of_memory": True, "by_bash": False}, EndReason.FAILED),
        (Exit(code=1), {"out_of_memory": True}, EndReason.FAILED),
        (Exit(code=1), {"tail": "x\nMemoryError"}, EndReason.OUT_OF_MEMORY),
        (Exit(code=1), {"tail": "torch.OutOfMemoryError: 3 GiB"}, EndReason.OUT_OF_MEMORY),
        (
            Exit(code=1),
            {"tail": "numpy._core._exceptions._ArrayMemoryError: no"},
            EndReason.OUT_OF_MEMORY,
        ),
        (
            Exit(code=1),
            {"tail": "RuntimeError: [enforce] DefaultCPUAllocator: can't allocate memory: 9 bytes"},
            EndReason.OUT_OF_MEMORY,
        ),
        (Exit(signal=6), {"tail": "terminate\n  what():  std::bad_alloc"}, EndReason.OUT_OF_MEMORY),
        (Exit(signal=9), {"tail": "MemoryError"}, EndReason.SIGNALLED),
        (Exit(code=1), {"tail": "ValueError: no MemoryError: this"}, EndReason.FAILED),
        (Exit(code=1, out_of_memory=True), {}, EndReason.OUT_OF_MEMORY),
        (Exit(code=127), {}, EndReason.START_FAILED),
        (Exit(code=127), {"spoke": True}, EndReason.FAILED),
        (Exit(code=127), {"by_bash": False}, EndReason.FAILED),
        (Exit(code=0), {"stop_reason": EndReason.TIMED_OUT}, EndReason.TIMED_OUT),
        (Exit(signal=9), {"stop_reason": "stopped early"}, "stopped early"),
        (Exit(signal=9), {"stop_reason": "stopped early", "out_of_memory": True}, "stopped early"),
        (Exit(lost=True), {}, EndReason.LOST),
    ],
)
def test_how_an_exit_is_judged(outcome, changes, reason):
    assert judge(outcome, **changes) == reason


@pytest.mark.parametrize(
    "signal, text",
    [(9, "ended by SIGKILL"), (15, "ended by SIGTERM"), (6, "a warning of another matter")],
)
def test_what_was_printed_before_is_no_reason_for_a_signal_from_outside(signal, text):
    told = {"stop_reason": None, "out_of_memory": False, "by_bash": True, "spoke": True}
    ending = ending_of(Exit(signal=signal), tail="a warning of another matter", **told)
    assert ending.text == text


def test_out_of_memory_is_seen_within_the_window(monkeypatch):
    count = 5
    monkeypatch.setattr(oom.OutOfMemoryWatch, "_count", lambda _self: count)
    watch = oom.OutOfMemoryWatch()
    for second in range(20):
        watch.sample(float(second))
    assert not watch.struck()
    count = 6
    assert watch.struck()
    watch.sample(20.0)  # the counter was read before the exit was noticed
    assert watch.struck()
    for second in range(21, 40):
        watch.sample(float(second))
    assert not watch.struck()


def test_a_kill_of_somebody_elses_process_is_not_ours(monkeypatch, tmp_path):
    """Mutation: kills on the whole host count where our control group has a counter."""
    (tmp_path / "memory.events").write_text("oom 0\noom_kill 0\n")
    monkeypatch.setattr(oom, "own_cgroup", lambda: str(tmp_path))
    asked = []
    own_count = oom.count_in
    monkeypatch.setattr(oom, "count_in", lambda *words: asked.append(words) or own_count(*words))
    watch = oom.OutOfMemoryWatch()
    watch.sample(0.0)
    assert not watch.struck()
    (tmp_path / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert watch.struck()
    assert {path for path, _ in asked} == {str(tmp_path / "memory.events")}


def test_timers_fire_in_order_and_not_after_cancel():
    timers, fired = Timers(), []
    for name, when in (("b", 2.0), ("a", 1.0), ("c", 2.0)):
        timers.at(when, lambda n=name: fired.append(n))
    timers.at(1.5, lambda: fired.append("x")).cancel()
    assert timers.next() == 1.0
    timers.fire(0.5)
    assert fired == []
    timers.fire(5.0)
    assert fired == ["a", "b", "c"]
    assert timers.next() is None


class TestLogFile:
    def test_nothing_printed_leaves_no_file(self, tmp_path):
        read_end, write_end = make_pipe()
        file = LogFile(str(tmp_path / "a" / "stdout"), max_bytes=10, max_files=2)
        assert file.pump(read_end)
        os.close(write_end)
        assert not file.pump(read_end)
        os.close(read_end)
        assert list(tmp_path.iterdir()) == []

    def test_rotation_keeps_the_newest(self, tmp_path):
        read_end, write_end = make_pipe()
        path = tmp_path / "stdout"
        file = LogFile(str(path), max_bytes=1000, max_files=3)
        for n in range(100):
            os.write(write_end, f"{n:099d}\n".encode())
            assert file.pump(read_end)
        sizes = {p.name: p.stat().st_size for p in tmp_path.iterdir()}
        assert set(sizes) == {"stdout", "stdout.1", "stdout.2"}
        assert max(sizes.values()) <= 1000
        assert file.tail(1) == f"{99:099d}"
        file.close()
        os.close(write_end)
        os.close(read_end)

    @pytest.mark.parametrize("first", range(960, 1001, 8))
    def test_a_tail_goes_on_across_files(self, tmp_path, first):
        """Mutation: only the newest file, which begins with the end of a secret that no mask
        knows."""
        read_end, write_end = make_pipe()
        file = LogFile(str(tmp_path / "stderr"), max_bytes=1000, max_files=3)
        text = f"{'x' * first}\nkey: {SECRET}\nrefused\n"
        os.write(write_end, text.encode())
        for _ in range(3):
            assert file.pump(read_end)
        assert (tmp_path / "stderr.1").exists()
        assert file.tail() == text.rstrip()
        assert file.tail(2) == f"key: {SECRET}\nrefused"
        file.close()
        os.close(write_end)
        os.close(read_end)

    @pytest.mark.parametrize("before", range(0, 40, 5))
    def test_a_tail_begins_with_a_line(self, tmp_path, before):
        """Mutation: it is cut where it has so many bytes, and half a secret is left."""
        path = tmp_path / "stderr"
        lines = "\n".join(["y" * 500] * 16)
        path.write_text(f"{'x' * 9_000}{SECRET}\n{lines}{'z' * (160 + before)}\n")
        masked = Mask([SECRET])(LogFile(str(path), max_bytes=1 << 20, max_files=1).tail())
        assert masked.startswith("y")
        assert len(masked) > 7_000

    @pytest.mark.parametrize("after", [8_192, 16_384])
    @pytest.mark.parametrize("seen", [1, 10, len(SECRET) - 1])
    def test_the_end_of_one_long_line_is_twice_as_long(self, tmp_path, seen, after):
        """Mutation: half a secret at its beginning outlives the mask and the cut behind it."""
        path = tmp_path / "stderr"
        path.write_text(f"{'x' * 9_000}{SECRET}{'y' * (after - seen)}")
        masked = Mask([SECRET])(LogFile(str(path), max_bytes=1 << 20, max_files=1).tail())
        assert f"{SECRET[-seen:]}y" not in masked[-8192:]

    def test_a_disk_that_refuses_does_not_stop_the_writer(self, tmp_path):
        (tmp_path / "file").write_text("")
        read_end, write_end = make_pipe()
        file = LogFile(str(tmp_path / "file" / "below" / "stdout"), max_bytes=10, max_files=2)
        for _ in range(50):
            os.write(write_end, b"x" * 4096)
            assert file.pump(read_end)
        assert file.failed
        os.close(write_end)
        os.close(read_end)

    def test_what_the_disk_does_not_take_is_told_all_the_same(self, tmp_path):
        """Else nobody learns why the trial failed: for want of room, most likely."""
        (tmp_path / "file").write_text("")
        read_end, write_end = make_pipe()
        file = LogFile(str(tmp_path / "file" / "stderr"), max_bytes=1 << 20, max_files=2)
        for n in range(1000):
            os.write(write_end, f"{n:99d}\n".encode())
            assert file.pump(read_end)
        os.write(write_end, b"OSError: [Errno 28] No space left on device\n")
        assert file.pump(read_end)
        assert file.failed
        *before, last = file.tail(10_000).splitlines()
        assert last == "OSError: [Errno 28] No space left on device"
        assert 50 < len(before) < 100, "bounded"
        os.close(write_end)
        os.close(read_end)

    def test_a_disk_that_becomes_full_takes_a_part_and_the_rest_is_told(
        self, tmp_path, monkeypatch
    ):
        read_end, write_end = make_pipe()
        os.write(write_end, b"first\nlast\n")
        room = iter([6])
        write = os.write

        def small(descriptor, content):
            try:
                return write(descriptor, content[: next(room)])
            except StopIteration:
                raise OSError(errno.ENOSPC, "No space left on device") from None

        monkeypatch.setattr(os, "write", small)
        file = LogFile(str(tmp_path / "stderr"), max_bytes=1000, max_files=2)
        assert file.pump(read_end)
        assert (tmp_path / "stderr").read_bytes() == b"first\n"
        assert file.tail() == "first\nlast"
        os.close(write_end)
        os.close(read_end)


def test_scripts_are_told_from_commands_that_need_a_shell():
    assert script_of("python train.py --lr 0.1 'a b'") == ("train.py", ("--lr", "0.1", "a b"))
    for command in (
        "python train.py > log",
        "python -u train.py",
        "python train.py; rm x",
        "X=1 python train.py",
        "bash train.sh",
        "python",
        "python train.py $HOME",
        "python 'train.py",
        "python -m train",
    ):
        assert script_of(command) is None, command


def test_functions_get_parameters_if_they_take_any():
    class Callable:
        def method(self):
            return "none"

        def other(self, params):
            return params

        def __call__(self, params):
            return params

    assert invoke(lambda: 1, {}) == 1
    assert invoke(lambda params: params, 2) == 2
    assert invoke(lambda *a: a, 2) == (2,)
    assert invoke(Callable().method, 3) == "none"
    assert invoke(Callable().other, 3) == 3
    assert invoke(Callable(), 4) == 4


def test_what_is_raised_becomes_an_exit():
    def leave(code):
        raise SystemExit(code)

    assert attempt_call(lambda: leave(None)).code == 0
    assert attempt_call(lambda: leave(3)).code == 3
    told = attempt_call(lambda: leave("sorry"))
    assert (told.code, told.text) == (1, "sorry")
    out = attempt_call(lambda: [][0])
    assert out.code == 1
    assert out.text.endswith("IndexError: list index out of range")

    def exhaust():
        raise MemoryError

    assert attempt_call(exhaust).out_of_memory


def test_references(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_X", "s")
    (tmp_path / "token").write_text("t\n")
    told = {"A": "env:SECRET_X", "B": f"file:{tmp_path}/token", "C": "plain"}
    assert resolve_references(told) == {"A": "s", "B": "t"}
    with pytest.raises(LookupError, match=r"A: .*NOT_SET"):
        resolve_references({"A": "env:NOT_SET"})
    with pytest.raises(LookupError, match="B: cannot read"):
        resolve_references({"B": "file:/nowhere"})


@pytest.fixture
def config(tmp_path):
    return agent_config(
        tmp_path,
        trial=TrialSpec(code_directory="/code", command="true"),
        weights_root=str(tmp_path / "w"),
        read_roots=(str(tmp_path / "pretrained"),),
    )


def test_configuration_there_and_back(config, tmp_path):
    (tmp_path / "c").write_bytes(encode_config(config))
    assert read_config(str(tmp_path / "c")) == config


def test_paths_in_parameters_are_made_absolute(config, tmp_path):
    start = facts.StartAttempt(
        LOCAL,
        1,
        2,
        '{"save_path":"a/b","restore_path":"x","lr":0.1}',
        "a/b",
        str(tmp_path / "pretrained/m"),
    )
    session = located(config, start, session_for(config, start, "ipc://a"))
    assert session.save_path == str(tmp_path / "w/a/b")
    assert session.restore_path == str(tmp_path / "pretrained/m")
    assert session.parameters == (
        f'{{"save_path":"{tmp_path}/w/a/b","restore_path":"{tmp_path}/pretrained/m","lr":0.1}}'
    )
    other = session_for(config, start, "ipc://a")
    assert other.routing != session.routing  # a secret per attempt


@pytest.mark.parametrize("path", ["../x", "/etc", "."])
def test_paths_that_lead_out_are_refused(config, path):
    start = facts.StartAttempt(LOCAL, 1, 1, "{}", path)
    with pytest.raises(Unpreparable):
        located(config, start, session_for(config, start, "ipc://a"))


def test_room_is_made_without_deleting(tmp_path):
    save = tmp_path / "gen" / "t1"
    make_room(str(save), 1)
    assert save.parent.is_dir()
    for content in ("first", "second"):
        save.write_text(content)
        make_room(str(save), 2)
    assert not save.exists()
    kept = {p.name: p.read_text() for p in save.parent.iterdir()}
    assert kept == {"t1.superseded.1": "first", "t1.superseded.1-2": "second"}
    save.mkdir()
    make_room(str(save), 3)  # an empty folder is nobody's work
    assert save.is_dir()
