"""Lines through folders that must go on: after a lost race, with what others left in the folder,
and with frames of any size."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from tests.unit.trial_runtime.test_folder_line import SECRET, Clock, Ends, works
from trial_runtime.endpoint import MAX_MESSAGE_BYTES
from trial_runtime.folder_line.line import UNHEARD_S, FolderLine
from trial_runtime.folder_line.relay import LONGEST_LOOK_S, Relay
from trial_runtime.folder_line.sealed import MOST_BYTES


@pytest.fixture
def ends(tmp_path: Path) -> Ends:
    made = Ends(tmp_path / "home" / "line")
    made.meet()
    return made


def test_an_end_that_was_passed_over_before_it_looked_again_is_heard_in_the_end(ends: Ends) -> None:
    """The other end has spoken with it, then with another one, and takes its life for a former one.
    Mutation: it rings with that life for ever."""
    old, new = ends.agent, ends.new_agent()
    new.look()
    ends.head.look()
    old.look()  # it gives way, and is back before the new one looks again
    ends.passes(3.0)
    old.look()
    ends.head.look()
    ends.agent = new  # the old one is gone
    ends.exchange(UNHEARD_S * 0.9)
    assert not ends.agent.send([b"x"]) or ends.exchange() == ([], [])
    ends.exchange(UNHEARD_S * 0.2)
    ends.exchange()
    works(ends)


def test_a_folder_among_the_files_keeps_nobody_from_writing(ends: Ends) -> None:
    """Mutation: what cannot be removed ends each try to write."""
    foreign = ends.folder / "up-somebody"
    foreign.mkdir()
    ends.agent = ends.new_agent()
    ends.meet()
    assert ends.agent.send([b"x"])
    assert ends.exchange()[0] == [b"x"]
    assert foreign.is_dir()


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    made = zmq.Context()
    yield made
    made.destroy(linger=0)


def test_a_large_frame_behind_others_has_a_file_for_itself(
    tmp_path: Path, context: zmq.Context[zmq.Socket[bytes]]
) -> None:
    """Mutation: whatever waits is one file, which may be larger than any end reads."""
    clock, lock = Clock(), threading.Lock()
    head = FolderLine(tmp_path / "line", "down", SECRET, makes=True, clock=clock)
    agent = FolderLine(tmp_path / "line", "up", SECRET, clock=clock)
    near, far = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    near.bind("inproc://near")
    far.connect("inproc://near")
    relay = Relay(head, lambda: far, anew=False)
    for _ in range(3):
        relay.pump(lock, 0.1)
        agent.look()
    frames = [b"a" * (MOST_BYTES // 2 - 1), b"b" * MAX_MESSAGE_BYTES, b"c"]
    for frame in frames:
        near.send(frame)
    got: list[bytes] = []
    for _ in range(4):
        relay.pump(lock, 0.1)
        got += agent.look()
    near.close()
    far.close()
    assert [len(frame) for frame in got] == [len(frame) for frame in frames]


def test_an_end_is_heard_when_a_socket_for_it_can_be_had_again(
    tmp_path: Path, context: zmq.Context[zmq.Socket[bytes]]
) -> None:
    """A process has so many descriptors, and a context so many sockets. Mutations: the next one is
    not asked for again, and what has come is dropped; the one before is used when it is closed."""
    clock, lock = Clock(), threading.Lock()
    head = FolderLine(tmp_path / "line", "down", SECRET, makes=True, clock=clock)
    behind = context.socket(zmq.DEALER)
    behind.bind("inproc://behind")
    full = False

    def opens() -> zmq.Socket[bytes]:
        if full:
            raise zmq.ZMQError(errno.EMFILE)
        made = context.socket(zmq.DEALER)
        made.connect("inproc://behind")
        return made

    relay = Relay(head, opens, anew=True)
    relay.pump(lock, 0.1)
    FolderLine(tmp_path / "line", "up", SECRET, clock=clock).look()
    relay.pump(lock, 0.1)
    assert relay.socket is not None
    full = True
    agent = FolderLine(tmp_path / "line", "up", SECRET, clock=clock)
    agent.look()
    for _ in range(3):
        with pytest.raises(zmq.ZMQError):
            relay.pump(lock, 0.1)
        assert not relay.listens
        agent.look()
    assert agent.send([b"hello"])
    full = False
    relay.pump(lock, 0.1)
    assert behind.poll(10_000)
    assert behind.recv() == b"hello"
    with lock:
        relay.close()
    behind.close()


@pytest.mark.parametrize("unseen_s", [LONGEST_LOOK_S, 5.0])
def test_who_may_come_by_another_way_is_looked_for_now_and_then(
    tmp_path: Path, context: zmq.Context[zmq.Socket[bytes]], unseen_s: float
) -> None:
    """Mutations: each of a thousand folders is opened each second for nobody; who has come is
    answered five seconds later."""
    head = FolderLine(tmp_path / "line", "down", SECRET, makes=True)
    far = context.socket(zmq.DEALER)
    relay, lock = Relay(head, lambda: far, anew=True, unseen_s=unseen_s), threading.Lock()

    for _ in range(12):
        before = time.monotonic()
        relay.pump(lock, 0.1)
    assert relay.due - before >= unseen_s
    FolderLine(tmp_path / "line", "up", SECRET).look()
    for _ in range(2):
        relay.pump(lock, 0.1)
    assert relay.due - time.monotonic() <= LONGEST_LOOK_S
    with lock:
        relay.close()
