"""The other ends of a floor: a bare tuner, a bare agent and a bare trial, each a process.

Started by :mod:`benchmarks.bare_head` as ``python -m benchmarks.bare_peers ROLE OPTIONS``. They
send and receive what the real ones do, wake the threads that those wake, and do nothing else:
what a frame says is neither made nor read.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable

import zmq

LENGTH = struct.Struct(">I")  # before each frame on a Unix socket, as in trial_runtime
WORDS_A_FRAME = 64
STOP = b"stop"
NUMBERS = struct.Struct(">IIII")  # at the head of an order; the rest is ballast


def dealer(address: str, name: str) -> zmq.Socket[bytes]:
    """A connection to the head, on which its first word is said."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    link = context.socket(zmq.DEALER)
    link.setsockopt(zmq.ROUTING_ID, name.encode())
    link.setsockopt(zmq.LINGER, 1000)
    link.connect(address)
    return link


class Tuner:
    """One thread that talks to the head, one that is told of ends, and ``blocked`` ones that wait
    for locks of their own.

    An order wakes the second one; it says a word and lets the first of the blocked go, which says
    one in turn and lets the next one go, until as many have gone as the order says. All words are
    queued for the first thread, which a pipe wakes, as in the tuner host. Of a crowd only one in
    64 wakes it, and waits until it has sent; each goes once, as its request has returned.
    """

    def __init__(self, address: str, *, word_bytes: int, blocked: int) -> None:
        self._word = b"w" * word_bytes
        self._words: deque[bytes] = deque()
        self._wake_out, self._wake_in = os.pipe()
        self._sent = threading.Event()
        self._crowd = blocked > 1
        self._count = 0  # how many are still to be let go, of those that go by one order
        self._end = threading.Lock()
        self._end.acquire()
        self._tickets = [threading.Lock() for _ in range(blocked)]
        for ticket in self._tickets:
            ticket.acquire()
        threading.Thread(target=self._told_of_ends, daemon=True).start()
        for number in range(blocked):
            threading.Thread(target=self._blocked, args=(number,), daemon=True).start()
        self._link = dealer(address, "tuner")
        self._link.send(b"here")

    def run(self) -> None:
        """Serve until told to stop."""
        poller = zmq.Poller()
        poller.register(self._link, zmq.POLLIN)
        poller.register(self._wake_out, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if self._wake_out in ready:
                os.read(self._wake_out, 4096)
            if words := [self._words.popleft() for _ in range(len(self._words))]:
                self._link.send(b"".join(words))
                self._sent.set()
            if self._link in ready:
                order = self._link.recv()
                if order == STOP:
                    return
                self._count = NUMBERS.unpack_from(order)[0]
                self._end.release()

    def _told_of_ends(self) -> None:
        while True:
            self._end.acquire()
            self._words.append(self._word)
            self._tickets[0].release()
            os.write(self._wake_in, b"w")

    def _blocked(self, number: int) -> None:
        while True:
            self._tickets[number].acquire()
            if not self._crowd:
                self._words.append(self._word)
                os.write(self._wake_in, b"w")
                continue
            at_once = number % WORDS_A_FRAME == 0 or number + 1 == self._count
            if at_once:
                self._sent.clear()
            self._words.append(self._word)
            if at_once:
                os.write(self._wake_in, b"w")
                self._sent.wait(0.002)
            if number + 1 < self._count:
                self._tickets[number + 1].release()
            return


class Agent:
    """Passes orders of the head on to a trial's process over a Unix socket, and says its words.

    An order has four numbers: how many frames the trial reports, how many bytes each of the
    frames has that the head gets, how many those are, and what it takes to begin: nothing (a
    worker that is there), a connection of its own (a fork), or a new process as well.
    """

    def __init__(self, address: str, folder: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/agent")
        self._listener.listen()
        self._link = dealer(address, "agent")
        self._link.send(b"here")
        self._trial, _ = self._listener.accept()

    def run(self) -> None:
        """Serve until told to stop."""
        poller = zmq.Poller()
        poller.register(self._link, zmq.POLLIN)
        true = shutil.which("true") or "true"
        while True:
            poller.poll()
            order = self._link.recv()
            send(self._trial, order)
            if order == STOP:
                return
            reports, size, frames, begin = NUMBERS.unpack_from(order)
            word = b"a" * size
            if begin == 2:
                child = os.posix_spawn(true, [true], os.environ)
            if begin:
                trial, _ = self._listener.accept()
                receive(trial)  # its hello
                self._link.send(word)  # it has started
                send(trial, order)  # its parameters
            else:
                trial = self._trial
            read(trial, reports)
            if frames == 3:
                self._link.send(word)  # its result; its end comes on its own
            if begin:
                trial.close()
            if begin == 2:
                os.waitpid(child, 0)
            self._link.send(word + b"m" * 12 * (reports - 1))


def trial(folder: str) -> None:
    """What a worker, or the processes of trials one after another, send."""
    link = socket.socket(socket.AF_UNIX)
    link.connect(f"{folder}/agent")
    while (order := receive(link)) != STOP:
        reports, _, _, begin = NUMBERS.unpack_from(order)
        if not begin:
            for _ in range(reports):
                send(link, order)
            continue
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(f"{folder}/agent")
            send(own, order)
            receive(own)
            for _ in range(reports):
                send(own, order)


def send(link: socket.socket, payload: bytes) -> None:
    """One frame."""
    link.sendall(LENGTH.pack(len(payload)) + payload)


def receive(link: socket.socket) -> bytes:
    """One frame of many bytes or few; what comes after it stays with the kernel."""
    (size,) = LENGTH.unpack(link.recv(LENGTH.size, socket.MSG_WAITALL))
    return link.recv(size, socket.MSG_WAITALL)


def read(link: socket.socket, frames: int) -> None:
    """So many frames, as many at a time as there are."""
    buffer = bytearray()
    at = 0
    while frames:
        buffer += link.recv(1 << 16)
        while len(buffer) >= at + LENGTH.size:
            (size,) = LENGTH.unpack_from(buffer, at)
            if len(buffer) < at + LENGTH.size + size:
                break
            at += LENGTH.size + size
            frames -= 1


def main() -> None:
    """One role, until told to stop."""
    role, options = sys.argv[1], json.loads(sys.argv[2])
    roles: dict[str, Callable[[], None]] = {
        "tuner": lambda: Tuner(
            options["address"], word_bytes=options["word_bytes"], blocked=options["blocked"]
        ).run(),
        "agent": lambda: Agent(options["address"], options["folder"]).run(),
        "trial": lambda: trial(options["folder"]),
    }
    roles[role]()


if __name__ == "__main__":
    main()
