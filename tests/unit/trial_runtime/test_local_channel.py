"""The Unix socket between a trial and its agent: real sockets, both sides in one process."""

from __future__ import annotations

import os
import random
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trial_runtime.agent.trials import listener as listeners
from trial_runtime.agent.trials.listener import FrameTooLong, Listener, Peer
from trial_runtime.local_channel import LENGTH, SCHEME, LocalChannel

LIMIT = 100_000
PATIENCE_S = 120.0


@pytest.fixture
def path() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:  # short: such paths have 107 bytes at most
        yield str(Path(folder) / "door")


@pytest.fixture
def listener(path: str) -> Iterator[Listener]:
    made = Listener(path, limit=LIMIT, most=4)
    yield made
    made.close()


def dial(path: str, hello: str = "secret") -> LocalChannel:
    return LocalChannel(SCHEME + path, hello, patience_s=PATIENCE_S)


def heard(listener: Listener, count: int) -> list[tuple[Peer, bytes | FrameTooLong | None]]:
    """The next ``count`` things; a bound on a hang, not a measure of speed."""
    found: list[tuple[Peer, bytes | FrameTooLong | None]] = []
    give_up = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < give_up, f"heard {len(found)} of {count}"
        found.extend(listener.receive())
    return found


def test_the_first_frame_is_the_secret_and_frames_keep_their_bounds(
    path: str, listener: Listener
) -> None:
    channel = dial(path)
    channel.send(b"one")
    channel.send(b"")
    channel.send(b"three" * 1000)
    frames = [frame for _, frame in heard(listener, 4)]
    assert frames == [b"secret", b"one", b"", b"three" * 1000]
    channel.close()


def test_frames_in_any_pieces(path: str, listener: Listener) -> None:
    draw = random.Random(3)
    frames = [draw.randbytes(draw.choice((0, 1, 7, 300, 40_000))) for _ in range(60)]
    stream = b"".join(LENGTH.pack(len(frame)) + frame for frame in frames)

    def write() -> None:
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(path)
            position = 0
            while position < len(stream):
                end = position + draw.choice((1, 3, 50, 9000))
                raw.sendall(stream[position:end])
                position = end

    writer = threading.Thread(target=write)
    writer.start()
    everything = heard(listener, len(frames) + 1)
    writer.join()
    assert [frame for _, frame in everything] == [*frames, None]


def test_a_length_above_the_limit_is_told_before_anything_is_kept(
    path: str, listener: Listener
) -> None:
    channel = dial(path)
    channel._socket.sendall(LENGTH.pack(LIMIT + 1))
    (_, hello), (peer, fault) = heard(listener, 2)
    assert hello == b"secret"
    assert isinstance(fault, FrameTooLong)
    assert peer.closed
    with pytest.raises(OSError, match="closed"):
        channel.receive(PATIENCE_S)
    channel.close()


def test_what_a_process_said_before_it_was_killed_is_heard(path: str, listener: Listener) -> None:
    """More than one read of it, from a peer that is gone when it is let in."""
    frames = [f"{number}".encode() * 700 for number in range(100, 130)]  # what the kernel takes
    pid = os.fork()
    if pid == 0:
        try:
            channel = dial(path)
            for frame in frames:
                channel.send(frame)
        finally:
            os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    (peer, hello), *rest = heard(listener, 1)
    rest += listener.drain(peer)
    assert hello == b"secret"
    assert [frame for _, frame in rest] == [*frames, None]
    assert len(b"".join(frames)) > listeners.READ_BYTES


def test_telling_who_has_left_loses_nothing_it_said(path: str, listener: Listener) -> None:
    channel = dial(path)
    ((peer, _),) = heard(listener, 1)
    channel.send(b"last words")
    channel.close()
    assert not peer.send(b"a receipt")
    assert not peer.send(b"another")
    assert [frame for _, frame in heard(listener, 2)] == [b"last words", None]


def test_both_ways_and_a_timeout(path: str, listener: Listener) -> None:
    channel = dial(path)
    ((peer, _),) = heard(listener, 1)
    assert channel.receive(0) is None
    assert channel.receive(0.01) is None
    assert peer.send(b"yes")
    assert channel.receive(PATIENCE_S) == b"yes"
    channel.close()
    assert [frame for _, frame in heard(listener, 1)] == [None]
    assert not peer.send(b"nobody is there")


def test_a_large_frame_is_handed_over_piece_by_piece(path: str, listener: Listener) -> None:
    channel = dial(path)
    ((peer, _),) = heard(listener, 1)
    large = os.urandom(3 << 20)
    assert peer.send(large)  # more than the kernel takes: the rest waits with us
    assert peer.send(b"after it")
    got: list[bytes | None] = []
    reader = threading.Thread(
        target=lambda: got.extend(channel.receive(PATIENCE_S) for _ in range(2))
    )
    reader.start()
    while reader.is_alive():
        assert list(listener.receive()) == []
    assert got == [large, b"after it"]
    channel.close()


def test_a_peer_that_never_reads_is_hung_up_on(
    path: str, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "MAX_UNSENT_BYTES", 1 << 20)
    channel = dial(path)
    ((peer, _),) = heard(listener, 1)
    sent = 0
    while peer.send(bytes(1 << 16)):
        sent += 1
        assert sent < 100
    assert peer.closed
    channel.close()


def test_more_than_the_limit_of_peers_wait_outside(path: str, listener: Listener) -> None:
    channels = [dial(path, f"{number}") for number in range(6)]
    first = heard(listener, 4)
    assert [frame for _, frame in first] == [b"0", b"1", b"2", b"3"]
    assert list(listener.receive()) == []
    first[0][0].close()
    assert [frame for _, frame in heard(listener, 1)] == [b"4"]
    for channel in channels:
        channel.close()


def test_the_socket_is_ours_alone_and_an_old_one_is_replaced(path: str) -> None:
    before = Listener(path, limit=10, most=1)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    before.close()
    after = Listener(path, limit=10, most=1)
    dial(path, "new").close()
    assert next(iter(heard(after, 1)))[1] == b"new"
    after.close()


def test_nobody_listens(path: str) -> None:
    with pytest.raises(OSError, match="No such file"):
        dial(path)
