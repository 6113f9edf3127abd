"""The process of an agent, as the driver of the agent sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dispatcher.core.model import EndReason
from trial_runtime.agent.config import AgentConfig


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of an agent that is gone, or cannot be had. ``hopeless``: trying again soon mends
    nothing, since somebody has to change something first (a key, a user, what is installed).
    ``left_by_another``: the process has ended, and a head before this one had started it.
    ``planned``: whoever lent its place took it back, such as for something more urgent or since its
    time was over; the agent is not to blame. ``ends_as``: how what ran there ended; None: that is
    not known. ``leaves``: it is there, has nothing to run, and is to be asked to leave.
    ``returns``: it has gone for a while, by its scheduler's will, and comes again with the same
    ticket: nothing is given up."""

    reason: str
    hopeless: bool = False
    left_by_another: bool = False
    planned: bool = False
    ends_as: EndReason | None = None
    leaves: bool = False
    returns: bool = False


MOVED = Loss("its place was taken back: its agent runs in another one", planned=True, returns=True)
"""The loss of an agent whose successor is there before its scheduler has said that it moves."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The wait for a place where the agent can run: nothing of it runs anywhere.

    ``reason``: in the words of whoever lends the place; empty if none is asked for, since there
    is nothing to run. ``waited_s``: for how long.
    """

    reason: str
    waited_s: float


class AgentProcess(Protocol):
    """The process of one agent: at most one at a time. Thread: the engine's.

    Nothing blocks but :meth:`end`, and :meth:`leave` for a moment.
    """

    @property
    def place(self) -> str:
        """The place where it runs, for people."""
        ...

    @property
    def trouble(self) -> str:
        """The reason why there is none, in a sentence; empty if that is not known."""
        ...

    @property
    def outdated(self) -> bool:
        """Whether it runs another version of our code than one that is started now."""
        ...

    @property
    def pid(self) -> int | None:
        """Process id there; None if there is no process, or it is not known (yet)."""
        ...

    @property
    def ends_at(self) -> float | None:
        """The moment at which its place is taken back (seconds since the epoch); None if that is
        not known, or never."""
        ...

    def waiting(self) -> Waiting | None:
        """Whether it waits for a place. That is no loss, however long it takes."""
        ...

    def ensure(self, config: AgentConfig) -> None:
        """Take up the one that a head before us has left, or start one.

        Processes that a dead one left behind are ended first, so that no attempt runs twice. The
        outcome is seen by :meth:`look`.
        """
        ...

    def look(self, silent_s: float) -> Loss | None:
        """Whether it is gone or cannot be had, reported once.

        Args:
            silent_s: seconds since its last message.
        """
        ...

    def expects(self, pid: int, ticket: str) -> bool | None:
        """Whether the process that sent a hello is the right one; None while that is not known.

        Args:
            pid: its number, where it runs.
            ticket: the one that it was started with; empty if it has none.
        """
        ...

    def give_up(self, grace_s: float = 0.0) -> None:
        """End what is left of a lost agent and what it ran, now or as soon as its place can be
        reached, and in any case before another one is started there. ``grace_s``: how long it may
        take to leave by itself, where it was asked to."""
        ...

    def terminate(self) -> None:
        """Ask it to end without a message of its head: it ends its trials with their grace."""
        ...

    def end(self, until: float) -> None:
        """Wait for the end that it was asked for, and end it by force at this moment of the
        monotonic clock."""
        ...

    def leave(self) -> None:
        """Let the agent wait for the next head: this one goes."""
        ...
