"""The socket between a trial's process and its agent.

Reports leave at once and are not waited for, until too many are under way; what must not be
lost waits for the agent's receipt. There is a lock, since training code reports from any
thread and a ZeroMQ socket belongs to one at a time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trial_runtime import trial_wire as wire

if TYPE_CHECKING:
    import zmq

#: Messages that may be under way before a report waits. The agent sends a receipt at least
#: every :data:`RECEIPT_EVERY` messages, so a fast reporter rarely waits.
MAX_UNDER_WAY = 1024
RECEIPT_EVERY = 256

#: An agent may make us wait while its own head is away (``headGrace``, 120 s by default), so
#: only a silence well beyond that means that it is gone.
PATIENCE_S = 600.0
#: Waiting at the very end of a process keeps a slot busy; a trial must not hang there.
PATIENCE_AT_EXIT_S = 30.0


class AgentLink:
    """One process's connection to its agent, opened by the first message.

    After a ``fork`` in the trial the child finds itself in another process and opens a
    connection of its own: a ZeroMQ context does not survive a fork.
    """

    def __init__(self, address: str, routing: str) -> None:
        self._address = address
        self._routing = routing
        self._lock = threading.Lock()
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._socket: zmq.Socket[bytes] | None = None
        self._pid = 0
        self._sent = 0
        self._receipted = 0
        self.stop_reason: str | None = None
        self.attempt: tuple[int, int] | None = None  # that a warm worker runs now
        self._refusal: str | None = None
        self._unheard = False  # the last word was a refusal: nobody may listen any more

    def post(self, messages: Sequence[wire.FromTrial], *, wait: bool = False) -> None:
        """Send messages as one frame; with ``wait``, block until the agent holds them.

        Raises:
            ReportRefused: the agent does not take reports of this attempt any more.
            AgentGone: the agent did not answer for a long time.
        """
        with self._lock:
            self._post(messages)
            if wait:
                self._wait_for_receipt(self._sent, PATIENCE_S)
            elif self._sent - self._receipted >= MAX_UNDER_WAY:
                self._wait_for_receipt(self._sent - MAX_UNDER_WAY // 2, PATIENCE_S)
            elif self._sent % 64 == 0:
                self._take_all()
            if self._refusal is not None:
                from trial_runtime.api_errors import ReportRefused

                text, self._refusal = self._refusal, None
                raise ReportRefused(text)

    def poll(self) -> None:
        """Take what the agent has sent, without waiting; connects if need be."""
        with self._lock:
            self._opened()
            self._take_all()

    def receive(self) -> list[wire.ToTrial]:
        """Block until the agent sends something (warm workers, between two trials)."""
        with self._lock:
            return self._take(self._opened().recv())

    def settle(self) -> None:
        """At the end of the process: wait, for a bounded time, until nothing is under way.

        The socket is left to the kernel: taking a ZeroMQ context down costs two turns of its
        threads, which a trial of a few milliseconds would notice.
        """
        if self._socket is None or self._pid != os.getpid():
            return
        with self._lock:
            if self._sent > self._receipted and not self._unheard:
                self._post([wire.Bye()])
                # In vain or not: an exit status must not change because of us.
                self._have_receipt(self._sent, PATIENCE_AT_EXIT_S)

    def renew(self, attempt: tuple[int, int]) -> None:
        """Speak for this attempt from now on, and forget what was said to the one before
        (warm workers)."""
        self.attempt = attempt
        self.stop_reason = None
        self._refusal = None

    def _opened(self) -> zmq.Socket[bytes]:
        pid = os.getpid()
        if self._socket is not None and self._pid == pid:
            return self._socket
        import zmq

        from trial_runtime.endpoint import Endpoint, connect

        if self._context is not None:
            # Made by our parent before it forked: its threads are not here to close it.
            _abandoned.append((self._context, self._socket))
        # Processes of one attempt share its secret; the ROUTER needs to tell them apart.
        own = f"{self._routing}:{pid:x}.{os.urandom(4).hex()}"
        self._context = zmq.Context()
        self._socket = connect(self._context, Endpoint(self._address, own))
        self._pid = pid
        self._sent = self._receipted = 0
        self._post([wire.Attach(pid, self.attempt)])
        return self._socket

    def _post(self, messages: Sequence[wire.FromTrial]) -> None:
        socket = self._opened()
        socket.send(wire.frame(messages))
        self._sent += len(messages)

    def _wait_for_receipt(self, count: int, patience_s: float) -> None:
        if not self._have_receipt(count, patience_s):
            from trial_runtime.api_errors import AgentGone

            raise AgentGone(
                f"the agent did not confirm a report within {patience_s:.0f} s",
                hint="its log is logs/agent.log in the experiment's folder",
            )

    def _have_receipt(self, count: int, patience_s: float) -> bool:
        socket = self._opened()
        give_up = time.monotonic() + patience_s
        while self._receipted < count and self._refusal is None:  # no receipt follows a refusal
            left = give_up - time.monotonic()
            if left <= 0 or not socket.poll(int(left * 1000) + 1):
                return False
            self._take(socket.recv())
        return True

    def _take_all(self) -> None:
        import zmq

        socket = self._opened()
        while True:
            try:
                payload = socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._take(payload)

    def _take(self, payload: bytes) -> list[wire.ToTrial]:
        messages = wire.to_trial(payload)
        for message in messages:
            if type(message) is wire.Receipt:
                self._receipted = max(self._receipted, message.count)
                self._unheard = False
            elif type(message) is wire.StopAsked:
                self.stop_reason = message.reason
            elif type(message) is wire.Refused:
                self._refusal = message.text
                self._unheard = True
        return messages


#: Contexts of a parent process, kept so that no finaliser touches them here.
_abandoned: list[Any] = []
