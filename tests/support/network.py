"""What lies between two peers: a line that is slow, repeats itself, is cut, and forgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dispatcher.channel import PeerMessage

if TYPE_CHECKING:
    from tests.support.world import World


class Line:
    """One direction of a connection.

    Frames arrive in their order, as ZeroMQ has it, but late; some come twice, and where
    ``overtaking`` is true some come before those that left earlier (a reconnection can do
    that to frames of two connections). What is under way when the line is reset is gone.
    """

    def __init__(
        self,
        world: World,
        arrive: Callable[[bytes, int], list[PeerMessage] | None],
        *,
        overtaking: bool = False,
    ) -> None:
        self._world = world
        self._arrive = arrive
        self._overtaking = overtaking
        self._connection = 0
        self._last_arrival = 0.0
        self.cut = False

    def send(self, frame: bytes, sender: int = 0) -> None:
        """Hand a frame in. A cut is not noticed by who speaks. ``sender`` arrives with it."""
        if self.cut:
            return
        world, odds = self._world, self._world.odds
        delay = world.rng.expovariate(1 / odds.latency_s)
        if self._overtaking and world.rng.random() < odds.overtakes:
            arrival = world.now + delay
        else:
            arrival = self._last_arrival = max(self._last_arrival, world.now + delay)
        self._carry(frame, sender, arrival)
        if world.rng.random() < odds.repeats:
            self._carry(frame, sender, arrival + world.rng.expovariate(1 / 0.2))

    def _carry(self, frame: bytes, sender: int, arrival: float) -> None:
        connection = self._connection

        def arrive() -> list[PeerMessage] | None:
            if self.cut or connection != self._connection:
                return None
            return self._arrive(frame, sender)

        self._world.at(arrival, arrive)

    def reset(self) -> None:
        """The connection broke, and another stands: all that was under way is lost."""
        self._connection += 1
        self._last_arrival = 0.0
