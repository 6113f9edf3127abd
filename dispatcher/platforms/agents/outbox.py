"""Sends messages to one agent: orders gather, and go as one frame with the acknowledgement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from dispatcher.ports import PeerLink
from trial_runtime import wire
from trial_runtime.endpoint import MAX_MESSAGE_BYTES

#: Messages after which an acknowledgement does not wait for an order to go with.
ACKNOWLEDGE_EVERY = 256

#: Time given to an agent to answer a welcome before it is welcomed again.
WELCOME_EVERY_S = 0.5

#: Messages share a frame up to this size (bytes). A larger one travels alone, up to the size of
#: a frame that the agent's end of the line takes.
FRAME_BYTES = 1 << 20
MAX_ORDER_BYTES = MAX_MESSAGE_BYTES - (64 << 10)


class _Encoded(NamedTuple):
    """A message as it will lie in its frame."""

    content: msgspec.Raw
    size: int  # bytes
    counts: bool  # the agent counts it, too


class AgentOutbox:
    """Sends to one incarnation of the agent after another. Thread: the engine's; never blocks.

    Args:
        link: the agent's place on our ROUTER.
        routing_id: the one of the agent there, and of its successors.
        epoch: of this head.
        clock: monotonic seconds.
    """

    def __init__(
        self, link: PeerLink, routing_id: str, epoch: int, clock: Callable[[], float]
    ) -> None:
        self._link = link
        self._routing_id = routing_id
        self._epoch = epoch
        self._clock = clock
        self._acknowledged = 0  # number of its newest message that it knows to be on disk
        self._orders = 0  # number of the newest order sent to this incarnation
        self._gathered: list[_Encoded] = []
        self._incarnation = ""  # the agent's, empty while there is none
        self._welcomed_at = float("-inf")
        self.spoke_at = clock()

    def add(self, message: wire.FromHead) -> bool:
        """Let it go with the next frame; false if it is larger than any frame may be."""
        encoded = _encoded(message)
        if encoded.size > MAX_ORDER_BYTES:
            return False
        self._gathered.append(encoded)
        return True

    def begin(self, incarnation: str, orders: int, acknowledged: int = 0) -> None:
        """Send to this agent from now on. Orders for one before it are void: the core will give
        them again.

        Args:
            incarnation: id of the agent's process; empty for none.
            orders: number of our newest order that it has received.
            acknowledged: number of the newest message that it keeps no more.
        """
        self._incarnation, self._orders, self._acknowledged = incarnation, orders, acknowledged
        self._gathered.clear()

    def forget(self) -> None:
        """Drop what waits for an agent that is gone, on the line, too: its successor has the same
        routing id."""
        self.begin("", 0)  # the next one has received none: it would miss those of this one
        self._link.renew(self._routing_id)

    @property
    def waiting(self) -> bool:
        """Whether there are orders to send."""
        return bool(self._gathered)

    def owes(self, acknowledged: int) -> int:
        """Number of messages on disk that were not acknowledged to it yet."""
        return acknowledged - self._acknowledged

    def send_all(self, acknowledged: int) -> None:
        """Send what has gathered; it is kept for the next time if it cannot go now."""
        while self._gathered or self.owes(acknowledged) > 0:
            orders = list(_first_frame(self._gathered))
            owed = [_encoded(wire.Ack(acknowledged))] if self.owes(acknowledged) > 0 else []
            if not self._send([*owed, *orders]):
                return
            self._acknowledged = acknowledged
            del self._gathered[: len(orders)]

    def welcome(self) -> None:
        """Ask the agent for all again; once, while that is on its way: each of many frames behind
        a gap would ask for as many again."""
        now = self._clock()
        if now - self._welcomed_at >= WELCOME_EVERY_S:
            self._welcomed_at = now
            self._send_frame(wire.HeadFrame(self._epoch, [wire.encode_order(wire.Welcome())]))

    def send(self, messages: Sequence[wire.FromHead]) -> bool:
        """Send these at once; returns whether they could go."""
        return self._send([_encoded(message) for message in messages])

    def dismiss(self, incarnation: str) -> None:
        """Tell an agent that was given up, and is back all the same, to leave at once."""
        leave = wire.encode_order(wire.Shutdown(0.0))
        self._send_frame(wire.HeadFrame(self._epoch, [leave], 0, incarnation))

    def _send(self, messages: Sequence[_Encoded]) -> bool:
        orders = self._orders + sum(each.counts for each in messages)
        contents = [each.content for each in messages]
        if not self._send_frame(wire.HeadFrame(self._epoch, contents, orders, self._incarnation)):
            return False
        self._orders = orders
        return True

    def _send_frame(self, frame: wire.HeadFrame) -> bool:
        sent = self._link.send(wire.frame(frame))
        if sent:
            self.spoke_at = self._clock()
        return sent


def _encoded(message: wire.FromHead) -> _Encoded:
    content = wire.encode_order(message)
    return _Encoded(content, memoryview(content).nbytes, not isinstance(message, wire.UNCOUNTED))


def _first_frame(gathered: Iterable[_Encoded]) -> Iterator[_Encoded]:
    """The first ones: as many as one frame holds, and at least one."""
    size = 0
    for each in gathered:
        if size and size + each.size > FRAME_BYTES:
            return
        size += each.size
        yield each
