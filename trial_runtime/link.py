"""The connection of a trial's process to its agent.

Reports leave at once and are not waited for, until too many are under way. A message that must
not be lost waits for the agent's receipt. There is a lock, since training code reports from any
thread.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trial_runtime import trial_wire as wire
from trial_runtime.retry import growing_pause

if TYPE_CHECKING:
    from trial_runtime.local_channel import LocalChannel

#: Messages that may be under way before a report waits. The agent sends a receipt at least
#: every :data:`RECEIPT_EVERY` messages, so a fast reporter rarely waits.
MAX_UNDER_WAY = 1024
RECEIPT_EVERY = 256

#: An agent may let a trial wait while its own head is away (``headGrace``, 120 s by default), so
#: only a silence well beyond that means that it is gone.
PATIENCE_S = 600.0

#: A head that was killed may have lost an offer: it is offered again after this pause, which
#: grows.
ASK_AGAIN_S, LONGEST_ASK_AGAIN_S = 5.0, 60.0

#: How long a waiting thread keeps others from reporting.
_TURN_S = 0.05


class AgentLink:
    """One process's connection to its agent, opened by the first message.

    After a ``fork`` in the trial the child finds itself in another process and opens a
    connection of its own: two that write to one socket would garble each other's frames.

    Args:
        address: the agent's socket, ``unix:PATH``.
        routing: the first frame of the connection, with the attempt's secret.
        channel: a connection that is open already; None: the first message opens one.
    """

    def __init__(self, address: str, routing: str, channel: LocalChannel | None = None) -> None:
        self._address = address
        self._routing = routing
        self._lock = threading.Lock()
        self._channel = channel  # one that is open already, and has sent its first messages
        self._pid = os.getpid() if channel is not None else 0
        self._sent = 0
        self._receipted = 0
        self.stop_reason: str | None = None
        self.attempt: tuple[int, int] | None = None  # that a warm worker runs now
        self._refusal: str | None = None
        self._orders: deque[wire.Run | wire.Leave] = deque()
        self._asked: dict[str, wire.OfferAnswered | None] = {}  # by digest

    def post(self, messages: Sequence[wire.FromTrial], *, wait: bool = False) -> None:
        """Send messages as one frame; with ``wait``, block until the agent holds them.

        Raises:
            ReportRefused: the agent does not take reports of this attempt any more.
            AgentGone: the agent has left, or did not answer for a long time.
        """
        with self._lock:
            try:
                self._post(messages)
                if wait:
                    self._wait_for_receipt(self._sent)
                elif self._sent - self._receipted >= MAX_UNDER_WAY:
                    self._wait_for_receipt(self._sent - MAX_UNDER_WAY // 2)
                elif self._sent % 64 == 0:
                    self._take_all()
            except OSError as error:
                if self._refusal is None:
                    raise _gone(f"the agent is gone: {error}") from error
            if self._refusal is not None:
                from trial_runtime.api_errors import ReportRefused

                text, self._refusal = self._refusal, None
                raise ReportRefused(text)

    def ask(self, offer: wire.Offered) -> wire.OfferAnswered:
        """Offer a version to a shared store, and wait for the head's answer; other threads may
        report meanwhile.

        Raises:
            ReportRefused: the agent does not take it.
            AgentGone: the agent has left, or no head has answered for a long time.
        """
        give_up = time.monotonic() + PATIENCE_S
        ask_at, asked = 0.0, 0
        self._asked[offer.digest] = None
        try:
            while True:
                now = time.monotonic()
                if now >= give_up:
                    raise _gone(f"no head has answered an offer within {PATIENCE_S:.0f} s")
                if now >= ask_at:
                    self.post([offer], wait=True)
                    asked += 1
                    ask_at = now + growing_pause(asked, ASK_AGAIN_S, LONGEST_ASK_AGAIN_S)
                with self._lock, _reaching_the_agent():
                    payload = None
                    if self._asked[offer.digest] is None:
                        payload = self._opened().receive(_TURN_S)
                    if payload is not None:
                        self._take(payload)
                answer = self._asked[offer.digest]
                if answer is not None:
                    return answer
        finally:
            self._asked.pop(offer.digest, None)

    def connect(self) -> None:
        """Announce this process to the agent (warm workers), and read nothing yet.

        Raises:
            AgentGone: nobody listens.
        """
        with self._lock, _reaching_the_agent():
            self._opened()

    def poll(self) -> None:
        """Read what the agent has sent, without waiting; connects if need be.

        Raises:
            AgentGone: the agent has left.
        """
        with self._lock, _reaching_the_agent():
            self._take_all()

    def next_order(self) -> wire.Run | wire.Leave:
        """Block until the agent's next order (warm workers, between two trials).

        Raises:
            AgentGone: the agent has left.
        """
        with self._lock:
            while not self._orders:
                with _reaching_the_agent():
                    payload = self._opened().receive(None)
                assert payload is not None
                self._take(payload)
            return self._orders.popleft()

    def renew(self, attempt: tuple[int, int]) -> None:
        """Report for this attempt from now on, and forget the messages to the one before
        (warm workers)."""
        self.attempt = attempt
        self.stop_reason = None
        self._refusal = None

    def _opened(self) -> LocalChannel:
        pid = os.getpid()
        if self._channel is not None and self._pid == pid:
            return self._channel
        from trial_runtime.local_channel import LocalChannel

        if self._channel is not None:
            self._channel.close()  # our copy of our parent's
        self._channel = LocalChannel(self._address, self._routing, patience_s=PATIENCE_S)
        self._pid = pid
        self._sent = self._receipted = 0
        self._post([wire.Attach(pid, self.attempt)])
        return self._channel

    def _post(self, messages: Sequence[wire.FromTrial]) -> None:
        channel = self._opened()
        try:
            channel.send(wire.frame(messages))
        except OSError:
            self._take_all()  # the agent's reason for hanging up, if it sent one
            raise
        self._sent += len(messages)

    def _wait_for_receipt(self, count: int) -> None:
        channel = self._opened()
        give_up = time.monotonic() + PATIENCE_S
        while self._receipted < count and self._refusal is None:
            payload = channel.receive(max(0.0, give_up - time.monotonic()))
            if payload is None:
                raise _gone(f"the agent did not confirm a report within {PATIENCE_S:.0f} s")
            self._take(payload)

    def _take_all(self) -> None:
        channel = self._opened()
        while True:
            payload = channel.receive(0)
            if payload is None:
                return
            self._take(payload)

    def _take(self, payload: bytes) -> None:
        for message in wire.to_trial(payload):
            if type(message) is wire.Receipt:
                self._receipted = max(self._receipted, message.count)
            elif type(message) is wire.StopAsked:
                self.stop_reason = message.reason
            elif type(message) is wire.OfferAnswered:
                if message.digest in self._asked:
                    self._asked[message.digest] = message
            elif type(message) is wire.Refused:
                self._refusal = message.text
            elif isinstance(message, (wire.Run, wire.Leave)):
                # Also while a report takes receipts in: the agent is quick to send the next one.
                self._orders.append(message)


@contextmanager
def _reaching_the_agent() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _gone(f"the agent is gone: {error}") from error


def _gone(text: str) -> Exception:
    from trial_runtime.api_errors import AgentGone

    return AgentGone(text, hint="its log is logs/agent.log in the experiment's folder")
