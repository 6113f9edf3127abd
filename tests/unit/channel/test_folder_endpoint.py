"""Agents that share nothing with the head but a folder: through the ROUTER, and as processes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from dispatcher.channel import FolderEndpoint, PeerMessage, Router, RouterLink
from tests.support.processes import wait_until
from trial_runtime.endpoint import FOLDER, Endpoint
from trial_runtime.folder_line.socket import connect_to_head

PATIENCE_S = 120.0
SECRET = "agent:w:0123456789abcdef"

#: An agent's end: sends its numbers, and prints what it gets.
PEER = """
import sys, time, zmq
from trial_runtime.endpoint import Endpoint
from trial_runtime.folder_line.socket import connect_to_head
context = zmq.Context()
socket = connect_to_head(context, Endpoint(sys.argv[1], sys.argv[2]))
number = 0
while True:
    try:
        socket.send(b"%s %d" % (sys.argv[3].encode(), number), zmq.NOBLOCK)
        number += 1
    except zmq.Again:
        pass
    if socket.poll(50):
        got = socket.recv()
        print(got.decode(), flush=True)
        if got == b"leave":
            break
socket.close(linger=500)
context.term()
"""


class Head:
    """A ROUTER with an endpoint to one folder."""

    def __init__(self, folder: Path) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.router = Router(self.context)
        self.link: RouterLink = self.router.admit("w", SECRET)
        self.endpoint = FolderEndpoint(self.router)
        self.endpoint.add(folder, SECRET)
        self.endpoint.open()

    def hear(self) -> list[PeerMessage]:
        for _ in range(int(PATIENCE_S * 10)):
            if heard := self.router.poll(0.1):
                return heard
        raise AssertionError(self.router.refusals())

    def close(self, *, remove: bool = False) -> None:
        self.endpoint.close(remove=remove)
        self.router.close()
        self.context.destroy(linger=0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "line"


@pytest.fixture
def head(folder: Path) -> Iterator[Head]:
    made = Head(folder)
    yield made
    made.close()


def start(folder: Path, name: str) -> subprocess.Popen[bytes]:
    arguments = ["-c", PEER, f"{FOLDER}{folder}", SECRET, name]
    return subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE)


def numbers(heard: list[bytes], name: str) -> list[int]:
    return [int(each.split()[1]) for each in heard if each.split()[0] == name.encode()]


def test_a_peer_of_a_folder_is_like_any_other(head: Head, folder: Path) -> None:
    """It is heard under its name, and answered; when it is told to leave all it sent is there.

    Mutations: it has a name of chance; what is sent at the end stays in memory."""
    peer = start(folder, "one")
    heard: list[bytes] = []
    try:
        first = head.hear()
        assert (first[0].owner, first[0].peer) == ("w", SECRET.encode())
        heard += [each.payload for each in first]
        assert head.link.send(b"answer")
        while len(heard) < 5:
            heard += [each.payload for each in head.hear()]
        assert head.link.send(b"leave")
        assert peer.wait(PATIENCE_S) == 0
        while got := head.router.poll(3.0):
            heard += [each.payload for each in got]
    finally:
        peer.kill()
        out, _ = peer.communicate()
    assert out.split() == [b"answer", b"leave"]
    sent = numbers(heard, "one")
    assert sent == list(range(len(sent)))


def test_a_peer_that_is_killed_is_followed_by_another(head: Head, folder: Path) -> None:
    """Mutation: what was meant for the first one is sent to the second."""
    first = start(folder, "one")
    try:
        head.hear()
        os.kill(first.pid, signal.SIGSTOP)
        for number in range(20):
            head.link.send(b"for the first %d" % number)
    finally:
        first.kill()
        first.communicate()
    second = start(folder, "two")
    try:
        while not numbers([each.payload for each in head.hear()], "two"):
            pass
        head.link.send(b"leave")
        out, _ = second.communicate(timeout=PATIENCE_S)
    finally:
        second.kill()
    assert out.split()[-1] == b"leave"


def test_a_head_that_is_killed_is_followed_by_another(folder: Path) -> None:
    """The peer goes on, and the next head hears it over the same folder. Its numbers only grow.

    Mutations: the next head waits for files of the last one; the peer waits for that one."""
    first = Head(folder)
    peer = start(folder, "one")
    try:
        heard = [each.payload for each in first.hear()]
        bells = {name: (folder / name).read_bytes() for name in ("up.bell", "down.bell")}
        first.close()
        for name, content in bells.items():  # as it died: nothing was tidied up
            if not (folder / name).exists():
                (folder / name).write_bytes(content)
        second = Head(folder)
        try:
            later = [each.payload for each in second.hear()]
            assert numbers(later, "one")[0] > numbers(heard, "one")[-1]
            assert second.link.send(b"leave")
            assert peer.wait(PATIENCE_S) == 0
        finally:
            second.close(remove=True)
    finally:
        peer.kill()
        peer.communicate()
    assert not folder.exists(), "nobody looks there any more"


def test_a_file_system_that_hangs_holds_nobody_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Sockets of either side close all the same. Mutation: their thread is waited for without end;
    its socket stays open, so that the context never ends."""
    goes_on, hangs = threading.Event(), threading.Event()

    def hang(path: str, flags: int) -> int:
        hangs.set()
        goes_on.wait()
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    head = Head(folder)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = connect_to_head(context, Endpoint(f"{FOLDER}{folder}", SECRET))
    try:
        socket.send(b"hello", zmq.NOBLOCK)
        assert head.hear()[0].payload == b"hello"
        monkeypatch.setattr("trial_runtime.folder_line.line.open_regular", hang)
        wait_until(hangs.is_set, "somebody looks")
        socket.close(linger=0)
        context.term()
        head.close()
    finally:
        goes_on.set()
    assert "hangs with its file system" in caplog.text
