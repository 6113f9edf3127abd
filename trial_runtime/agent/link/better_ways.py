"""Tries whether a better way leads to the head again, while a worse one carries everything.

What is tried is a connection of its own without our routing id, so that the head takes no word for
ours before it stands: nothing that is under way by the worse one is at risk until then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Optional, Protocol

import zmq
from msgspec.structs import replace

from trial_runtime.agent.link.ways import try_s
from trial_runtime.endpoint import Endpoint
from trial_runtime.folder_line.socket import connect_to_head, stands
from trial_runtime.retry import growing_pause

#: Pauses before better ways are tried (seconds): the first after a worse one was taken, then twice
#: as long each time. A network that comes and goes must not take agents to and fro with it.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 60.0, 960.0


class TriedWay(Protocol):
    """A connection that is tried."""

    @property
    def stands(self) -> bool:
        """Whether the head is at its other end."""

    def close(self) -> None:
        """End it."""


class TriedSocket:
    """One of ZeroMQ, over which nothing is sent.

    Args:
        context: ZeroMQ's context; the caller owns it.
        endpoint: of the head.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoint: Endpoint) -> None:
        self._socket = connect_to_head(context, endpoint)

    @property
    def stands(self) -> bool:
        """Whether the head has shown its key."""
        return stands(self._socket)

    def close(self) -> None:
        """End it."""
        self._socket.close(linger=0)


class BetterWays:
    """Tries the ways before the one that is taken, one after another, now and then.

    Args:
        connect: begins a connection; returns before it stands. May raise ``OSError``, or
            ``zmq.ZMQError``.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        connect: Callable[[Endpoint], TriedWay],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._rounds = 0
        self._due: Optional[float] = None  # None: no worse way is taken, as far as known
        self._left: list[Endpoint] = []
        self._tried: Optional[tuple[Endpoint, TriedWay, float]] = None

    def look(self, better: Callable[[], Sequence[Endpoint]]) -> Optional[Endpoint]:
        """Return a way that leads to the head, if one does; called at each heartbeat while the head
        answers.

        Args:
            better: returns those to try, the best first; called as a round begins.
        """
        now = self._clock()
        if self._due is None:
            self._due = now + growing_pause(self._rounds + 1, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        if self._tried is not None:
            endpoint, connection, until = self._tried
            if connection.stands:
                self.stop()
                return endpoint
            if now < until:
                return None
            self._end_try()
        elif not self._left:
            if now < self._due:
                return None
            self._left = list(better())
            self._rounds += bool(self._left)
        while self._left:
            if self._begin_try(self._left.pop(0), now):
                return None
        self._due = None
        return None

    def stop(self) -> None:
        """End what is tried; the next round begins after a pause."""
        self._end_try()
        self._left, self._due = [], None

    def _begin_try(self, endpoint: Endpoint, now: float) -> bool:
        try:
            connection = self._connect(replace(endpoint, routing_id=""))
        except (OSError, zmq.ZMQError):
            return False  # no room for a socket, or its file, now: the next one, or another time
        self._tried = endpoint, connection, now + try_s(endpoint)
        return True

    def _end_try(self) -> None:
        tried, self._tried = self._tried, None
        if tried is not None:
            tried[1].close()
