"""A visit of a place that is not this machine: all that the driver of an agent there needs."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from trial_runtime.agent.config import AgentConfig


class AgentEnded(Exception):
    """Raised when the agent's process is not there any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HeadGone(Exception):
    """Raised when this head does not lead any more: it leaves without a message."""


class Visit(Protocol):
    """A connection to a place, and the orders for an agent there. Thread: one of its own.

    Entering it connects, and brings there what is lacking; leaving it closes the connection. All
    methods may block, and raise ``BackendError``: a :class:`~dispatcher.errors.PassingBackendError`
    is tried again soon, any other one after a minute or more, since somebody has to change
    something first. Any other exception is taken for one of the latter.

    A visit may be a :class:`VersionedVisit`, too.
    """

    def __enter__(self) -> Self:
        """Connect."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection. The agent goes on."""
        ...

    def check(self) -> None:
        """Raise if the connection is over. Called about twice a second."""
        ...

    def ensure(self, config: AgentConfig) -> tuple[int, bool]:
        """Take up the agent that a head before us has left there, telling it where its head is
        now, or start one; returns its process id there, and whether it is a new one.

        Processes that a dead one left behind are ended first, so that no attempt runs twice.
        """
        ...

    def take_up(self, config: AgentConfig) -> int:
        """Tell the agent where its head is now; its process id. Raises :class:`AgentEnded`."""
        ...

    def look(self, config: AgentConfig) -> None:
        """Check the agent's process. Raises :class:`AgentEnded` if it is gone."""
        ...

    def end(self, config: AgentConfig, grace_s: float, *, ask: bool) -> None:
        """Wait for its end, then end it by force; what it ran ends in any case.

        Args:
            config: the agent's configuration, as on this machine.
            grace_s: seconds to wait before force.
            ask: ask it to end first: its head could not.
        """
        ...


@runtime_checkable
class VersionedVisit(Protocol):
    """A visit that tells versions of agents apart; those of other packages need not."""

    @property
    def outdated(self) -> bool:
        """Whether the agent that ``ensure`` or ``take_up`` has found runs another version of our
        code than one that is started now. It is replaced as soon as it has nothing to run."""
        ...
