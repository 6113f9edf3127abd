"""The allocation of several nodes, as the agent of rank 0 has it."""

from __future__ import annotations

import time
from collections.abc import Callable

import zmq

from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.nodes.followers import Followers
from trial_runtime.agent.nodes.meeting import MEET_S, Meeting, own_address

#: After so long the head is told who has not come (seconds).
PATIENCE_S = 60.0


class Nodes:
    """The other nodes, and where they meet. Owned by the agent's loop.

    Args:
        context: ZeroMQ's; the caller owns it.
        config: of the agent.
        meeting: where the others look for this one.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        config: AgentConfig,
        meeting: Meeting,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._meeting = meeting
        self._clock = clock
        self._began = clock()
        self._trouble: str | None = None  # as it was taken last; None: not known yet
        self.followers = Followers(context, config.nodes, own_address(config.head.address), clock)
        self.socket = self.followers.socket

    def open(self) -> None:
        """Let the others come. Raises ``OSError``."""
        self._meeting.open(self.followers.leader)

    def receive(self) -> None:
        """Take what the others have sent."""
        self.followers.receive()

    def tick(self) -> None:
        """Speak to the others, and look who is silent; called each second."""
        self.followers.tick()

    def take_trouble(self) -> str | None:
        """The reason why this allocation cannot work, if that has changed; empty if it can."""
        missing, trouble = self.followers.missing, ""
        if missing:
            if self._clock() - self._began < PATIENCE_S:
                return None
            ranks = ", ".join(map(str, missing))
            trouble = (
                f"{len(missing)} of the {self.followers.nodes} nodes of its allocation have not "
                f"come to {self.followers.host}: rank {ranks}"
            )
        if trouble == self._trouble:
            return None
        self._trouble = trouble
        return trouble

    @property
    def lost(self) -> str:
        """The first node that was lost, or never came, for people; empty if none is. What cannot be
        had on all nodes is given back: others may wait for a part of it."""
        missing = self.followers.missing
        if missing and self._clock() - self._began > MEET_S:
            return f"rank {missing[0]} of its allocation has not come within {MEET_S:.0f} s"
        return self.followers.lost

    @property
    def leaving(self) -> bool:
        """Whether the place of one of them is taken back."""
        return self.followers.leaving

    def close(self) -> None:
        """Send the others away: the allocation is over."""
        self.followers.close("rank 0 has left")
        self._meeting.close()
