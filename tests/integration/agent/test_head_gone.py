"""The agent without its head: promise 6, and nothing lost when a head comes back."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from tests.support.processes import holds_within
from tests.support.workers import LOCAL
from trial_runtime import facts, wire
from trial_runtime.facts import EndReason

COUNTING = """
from tests.support import hold
import trial_runtime as t
def main(p):
    step = 0
    while not t.should_stop():
        t.report_intermediate(step)
        step += 1
        hold.pace(0.005)
"""


def connections_of(pid: int) -> int:
    """How many sockets a process has."""
    count = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(descriptor).startswith("socket:")
    return count


def test_without_a_head_nothing_is_left_after_the_grace(head_with):
    head = head_with(command="trap '' TERM; sleep 600", head_grace_s=0.5, stop_grace_s=0.2)
    head.start(1)
    head.until(lambda: len(head.ours()) > 0)
    head.die()
    assert head.wait() == 0
    assert head.ours() == []


def test_the_next_agent_hands_in_what_the_last_could_not(head_with):
    head = head_with(function="train:main", head_grace_s=0.5, stop_grace_s=0.2)
    head.script(COUNTING)
    head.acknowledging = False
    head.start(1)
    head.until(lambda: len(head.metrics(1)) > 10)
    seen = head.metrics(1)
    head.die()
    assert head.wait() == 0
    head.words.clear()
    head.acknowledging = True
    head.live_again()
    head.launch()
    end = head.end_of(1)
    assert end.reason == EndReason.SHUTDOWN
    assert head.hellos[-1].holds == [(1, 1)]
    told = head.metrics(1)
    assert told == list(range(len(told)))
    assert len(told) >= len(seen)
    head.until(lambda: not (head.folder / "spool-local").exists())


def test_a_head_that_comes_back_within_the_grace_misses_no_metric(head_with):
    head = head_with(function="train:main", head_grace_s=60.0)
    head.script(COUNTING)
    head.start(1)
    head.until(lambda: len(head.metrics(1)) > 20)
    for _ in range(2):
        head.die()
        head.live_again()
        seen = len(head.metrics(1))
        head.until(lambda seen=seen: len(head.metrics(1)) > seen + 20)
        assert head.hellos[-1].holds == [(1, 1)]
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, 20.0))
    assert head.end_of(1).exit_code == 0
    told = [w.seq for w in head.of(facts.MetricReported, 1)]
    assert sorted(set(told)) == list(range(1, max(told) + 1))
    assert len({h.life for h in head.hellos}) == 1


def test_an_agent_with_nothing_to_say_greets_the_next_head_before_its_next_heartbeat(head_with):
    """Mutation: the agent sends nothing when its connection stands again."""
    beat_s, greets_within_s = 5.0, 3.5
    head = head_with(heartbeat_s=beat_s)
    head.heartbeats.clear()
    head.until(lambda: head.heartbeats)
    beat_at = time.monotonic()
    head.die()
    back_at = beat_at + beat_s + 1.0  # the beat before was in vain; the next one is 4 s away
    assert holds_within(lambda: time.monotonic() >= back_at, 60.0)
    known = len(head.hellos)
    head.live_again()
    head.until(lambda: len(head.hellos) > known)
    assert time.monotonic() < back_at + greets_within_s


def test_words_not_acknowledged_are_said_again(head_with):
    head = head_with(function="train:main")
    head.script("import trial_runtime as t\ndef main(p): t.report_intermediate(1); return 2\n")
    head.acknowledging = False
    head.run(1)
    heard = list(head.words)
    head.words.clear()
    head.die()
    head.acknowledging = True
    head.live_again()
    head.end_of(1)
    assert head.words == heard
    head.run(2)  # the order follows the acknowledgement of the first trial's words
    head.words.clear()
    head.die()
    head.live_again()
    head.run(3)
    assert not head.of(facts.AttemptEnded, 1)


def test_an_older_head_is_refused(head_with):
    head = head_with(command="echo ran")
    head.epoch = 5
    head.heartbeats.clear()
    head.until(lambda: head.heartbeats)  # it follows epoch 5 now
    head.send(facts.StartAttempt(LOCAL, 1, 1, "{}"), epoch=4)
    head.until(lambda: head.fenced)
    assert head.fenced == [5]
    head.run(2)
    assert not head.of(facts.AttemptStarted, 1)


def test_all_words_of_an_older_head_are_refused_and_counted(head_with):
    """Starts and stops alike. Mutation: ``HeadLink.receive`` compares no epochs."""
    head = head_with(command="sleep 600")
    head.start(1)
    head.until(lambda: head.of(facts.AttemptStarted, 1))
    head.epoch = 5
    head.heartbeats.clear()
    head.until(lambda: head.heartbeats)  # it follows epoch 5 now
    head.send(
        facts.StartAttempt(LOCAL, 2, 1, "{}"),
        facts.StopAttempt(LOCAL, 1, 1, EndReason.LOST, 0.0),
        epoch=4,
    )
    head.send(wire.Shutdown(0.0), wire.Ack(99), epoch=3)
    head.until(lambda: len(head.fenced) == 2)
    head.heartbeats.clear()
    head.until(lambda: head.heartbeats)
    assert head.heartbeats[-1].refused == {"messages of an older head": 4}
    assert head.heartbeats[-1].running == 1
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, 0.0))
    assert head.end_of(1).reason == "killed by the user"
    assert not head.of(facts.AttemptStarted, 2)


def test_a_head_that_hangs_is_left_for_the_one_at_its_place(head_with):
    """Its end of the connection stays open, so nothing breaks. Mutation: the agent looks for
    no other head. And however often heads hang, the agent keeps one connection."""
    head = head_with(function="train:main", head_grace_s=60.0)
    head.script(COUNTING)
    head.start(1)
    head.until(lambda: len(head.metrics(1)) > 20)
    before, hung = connections_of(head.process.pid), []
    for _ in range(4):
        hung.append(head.socket)
        head.socket = None
        Path(head.address.removeprefix("ipc://")).unlink()
        head.live_again()
        seen = len(head.metrics(1))
        head.until(lambda seen=seen: len(head.metrics(1)) > seen + 20)
    # ZeroMQ closes what was left in a thread of its own, when the machine finds the time.
    head.until(lambda: connections_of(head.process.pid) <= before, "one connection is kept")
    for socket in hung:
        socket.close(linger=0)
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, 20.0))
    assert head.end_of(1).exit_code == 0
    told = [w.seq for w in head.of(facts.MetricReported, 1)]
    assert told == list(range(1, len(told) + 1))


def test_a_head_that_hangs_is_a_head_that_is_gone(head_with):
    """Its connection stands, and nothing comes. Mutation: only a broken connection counts."""
    head = head_with(command="sleep 600", head_grace_s=0.5, stop_grace_s=0.2)
    head.start(1)
    head.until(lambda: len(head.ours()) > 0)
    assert head.wait() == 0  # nobody listens meanwhile
    assert head.ours() == []


def test_an_agent_that_was_stopped_for_longer_than_the_grace_asks_before_it_leaves(head_with):
    """It has heard nothing, for it has not listened. Mutation: ``Silence`` counts the time
    between two looks in full."""
    head = head_with(command="true", head_grace_s=3.0)
    os.kill(head.process.pid, signal.SIGSTOP)
    time.sleep(4.5)  # what the test is about; nothing is said meanwhile
    head.heartbeats.clear()
    os.kill(head.process.pid, signal.SIGCONT)
    head.until(lambda: head.heartbeats)
    assert head.run(1).exit_code == 0
