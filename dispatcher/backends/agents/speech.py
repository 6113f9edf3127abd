"""What a head says to one agent: orders gather, and go as one frame with the acknowledgement."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dispatcher.ports import Link
from trial_runtime import wire

#: Words after which an acknowledgement does not wait for an order to go with.
ACKNOWLEDGE_EVERY = 256

#: Time given to an agent to answer a welcome before it is welcomed again.
WELCOME_EVERY_S = 0.5

#: Messages that an agent must not miss; the others are repeated, or made up for by the next.
_ORDERS = (wire.Start, wire.Stop, wire.Shutdown)


class Speech:
    """To one life of the agent after another. Thread: the engine's; never blocks.

    Args:
        link: the agent's place on our ROUTER.
        epoch: of this head.
        clock: monotonic seconds.
    """

    def __init__(self, link: Link, epoch: int, clock: Callable[[], float]) -> None:
        self._link = link
        self._epoch = epoch
        self._clock = clock
        self._told = 0  # number of the newest word that it knows to be on disk
        self._orders = 0  # number of the newest order sent to this life
        self._gathered: list[wire.FromHead] = []
        self._welcomed_at = float("-inf")
        self.spoke_at = clock()

    def add(self, message: wire.FromHead) -> None:
        """Let it go with the next frame."""
        self._gathered.append(message)

    def begin(self, orders: int, told: int = 0) -> None:
        """To an agent that has heard so many orders of ours, and keeps no word up to ``told``.
        Orders for one before it are void: the core will give them again."""
        self._orders, self._told = orders, told
        self._gathered = []

    @property
    def waiting(self) -> bool:
        """Whether there are orders to say."""
        return bool(self._gathered)

    def owes(self, acknowledged: int) -> int:
        """How many words more are on disk than it has been told."""
        return acknowledged - self._told

    def send_all(self, acknowledged: int) -> None:
        """Say what has gathered; it is kept for the next time if it cannot go now."""
        messages = self._gathered
        if self.owes(acknowledged) > 0:
            messages = [wire.Ack(acknowledged), *messages]
        if messages and self.send(messages):
            self._told = acknowledged
            self._gathered = []

    def welcome(self) -> None:
        """Ask for all again; once, while that is on its way: each of many frames behind a gap
        would ask for as many again."""
        now = self._clock()
        if now - self._welcomed_at >= WELCOME_EVERY_S:
            self._welcomed_at = now
            self.send([wire.Welcome()])

    def send(self, messages: Sequence[wire.FromHead]) -> bool:
        """Say these at once; whether they could go."""
        orders = self._orders + sum(isinstance(message, _ORDERS) for message in messages)
        sent = self._link.send(wire.frame(wire.HeadFrame(self._epoch, list(messages), orders)))
        if sent:
            self.spoke_at = self._clock()
            self._orders = orders
        return sent
