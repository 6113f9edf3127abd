"""Events of this host, from runners and resources to the agent's attempts, in their order.

Whoever sees something notes it here and calls nobody: the agent's loop takes the events once the
one that noted them has returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from trial_runtime.agent.attempt import Attempt, Exit
from trial_runtime.facts import EndReason


@dataclass(frozen=True)
class Started:
    """The process of an attempt is there."""

    attempt: Attempt


@dataclass(frozen=True)
class Exited:
    """The process of an attempt is gone, or its function is over."""

    attempt: Attempt


@dataclass(frozen=True)
class OverBound:
    """An attempt is to end for a cause on this host.

    Args:
        attempt: one that has not ended.
        reason: of its end.
        text: the cause, for the user.
        grace_s: time until SIGKILL (seconds); 0 kills at once.
    """

    attempt: Attempt
    reason: EndReason
    text: str
    grace_s: float


Event = Union[Started, Exited, OverBound]


class AgentEvents:
    """The events that nobody has taken yet. Owned by the agent's loop."""

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()
        self._offer_changed = False

    def started(self, attempt: Attempt) -> None:
        """Note that an attempt's process is there."""
        self._waiting.append(Started(attempt))

    def exited(self, attempt: Attempt, outcome: Exit) -> None:
        """Note the exit of an attempt; the first one counts.

        The record has it at once: a runner must not signal a process that was reaped.
        """
        if attempt.exit is None:
            attempt.exit = outcome
            self._waiting.append(Exited(attempt))

    def over_bound(self, event: OverBound) -> None:
        """Note that an attempt is to end."""
        self._waiting.append(event)

    def offer_changed(self) -> None:
        """Note that the resources of this host are others than before, or known at last."""
        self._offer_changed = True

    def take(self) -> Iterator[Event]:
        """The events so far, and those that come while these are handled."""
        while self._waiting:
            yield self._waiting.popleft()

    def take_offer_changed(self) -> bool:
        """Whether the offer of resources has changed since the last call."""
        changed, self._offer_changed = self._offer_changed, False
        return changed
