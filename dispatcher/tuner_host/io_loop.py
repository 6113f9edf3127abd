"""The one thread that talks to the head: receives its messages, sends those of all threads."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable

import zmq

from dispatcher.tuner_host import messages
from dispatcher.tuner_host.outbox import Outbox
from trial_runtime.failpoints import failpoint

#: While a delivery is under way: how long its first half may wait for the second (seconds).
SECOND_HALF_S = 0.02

#: While many threads are released or started one after another, their messages are gathered for
#: so long (seconds): a frame and a wake-up for each would cost more than its content. The first
#: of them are sent at once, later ones after twice as long each time, up to ``GATHER_S``.
FIRST_GATHER_S = 0.000_25
GATHER_S = 0.002

#: A thread with a message must wake the I/O thread if that sleeps for longer than this (seconds).
DOZE_S = 0.005


class IoLoop:
    """Polls the DEALER, the outbox and the pipe that ends with the head.

    Args:
        socket: the DEALER, connected to the head.
        outbox: the messages of all threads.
        take: gets each decoded message, in order; must not block.
        due: called after each round; seconds until it wants to be called again, or None.
        head_pipe: end of file there means that the head is gone; -1 without one.
        orphaned: called then; does not return.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        outbox: Outbox,
        *,
        take: Callable[[object], None],
        due: Callable[[], float | None],
        head_pipe: int,
        orphaned: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._socket = socket
        self._outbox = outbox
        self._take = take
        self._due = due
        self._head_pipe = head_pipe
        self._orphaned = orphaned
        self._frames: deque[bytes] = deque()
        self._stopped = False
        self._clock = clock
        self._sent_at = 0.0
        self._gather_s = 0.0
        self._sent = threading.Event()
        self._dozing = False
        self._poller = zmq.Poller()
        self._poller.register(socket, zmq.POLLIN)
        self._poller.register(outbox.fileno(), zmq.POLLIN)
        if head_pipe >= 0:
            self._poller.register(head_pipe, zmq.POLLIN)

    def run(self) -> None:
        """Serve until :meth:`stop`."""
        woken = True
        while not self._stopped:
            self.send(woken)
            wait_s = self._due()
            self._dozing = wait_s is None or wait_s > DOZE_S
            if self._dozing:
                self._gather_s = 0.0  # no crowd: the first message of the next one is sent at once
            if self._dozing and self._outbox.waiting():
                continue  # queued by a thread that still took this one for awake
            timeout = None if wait_s is None else max(0, round(wait_s * 1000 + 0.5))
            ready = dict(self._poller.poll(timeout))
            self._dozing = False
            woken = self._outbox.fileno() in ready
            if self._head_pipe in ready and not os.read(self._head_pipe, 1):
                self._orphaned()
            if self._socket in ready:
                self._receive()

    def say_in_crowd(self, message: object) -> None:
        """Queue a message that may wait a moment for others, as one of many. Any thread.

        Now and then the calling thread waits until the message is sent: threads that run one
        after another for microseconds each keep the interpreter from the I/O thread for as long
        as there are any.
        """
        if self._clock() - self._sent_at > self._gather_s:
            self._gather_s = min(GATHER_S, 2 * self._gather_s or FIRST_GATHER_S)
            self._sent.clear()
            self._outbox.say(message)
            self._sent.wait(GATHER_S)
            return
        self._outbox.say_later(message)
        if self._dozing:
            self._outbox.wake()

    def make_way(self) -> None:
        """Leave the interpreter to others until the queue is sent, for a moment at most.

        For threads that have much to do, and for whose first messages others wait.
        """
        self._sent.clear()
        if self._outbox.waiting():
            self._sent.wait(GATHER_S)

    def stop(self) -> None:
        """Let :meth:`run` return once the queue is sent. Any thread."""
        self._stopped = True
        self._outbox.wake()

    def close(self) -> None:
        """Close the socket; messages that ZeroMQ still holds get a second to leave."""
        self.send()
        self._socket.close(linger=1000)

    def send(self, woken: bool = True) -> None:
        """Hand the queue to ZeroMQ, as far as it takes messages."""
        self._outbox.clear(readable=woken)
        queued = self._outbox.take()
        if queued:
            self._sent_at = self._clock()
            self._frames.extend(messages.encode(queued))
            failpoint("host.words.gathered")
        while self._frames:
            try:
                self._socket.send(self._frames[0], zmq.NOBLOCK)
            except zmq.Again:
                self._poller.modify(self._socket, zmq.POLLIN | zmq.POLLOUT)
                return
            self._frames.popleft()
            if not self._frames:
                self._poller.modify(self._socket, zmq.POLLIN)
        self._sent.set()

    def _receive(self) -> None:
        while self._readable():
            for message in messages.decode_from_head(self._socket.recv()):
                self._take(message)

    def _readable(self) -> bool:
        """Whether a message is there; cheaper than a receive that is refused."""
        state = self._socket.get(zmq.EVENTS)
        return isinstance(state, int) and bool(state & zmq.POLLIN)
