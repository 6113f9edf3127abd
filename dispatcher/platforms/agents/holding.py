"""Attempts that an agent has not ended yet: only an agent that holds nothing is replaced."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dispatcher.core.actions import StartAttempt
from dispatcher.core.events import AttemptEnded, Event


class Holding:
    """The attempts of one agent, by trial and number."""

    def __init__(self) -> None:
        self._attempts: set[tuple[int, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._attempts)

    def given(self, action: StartAttempt) -> None:
        """Add an attempt that the agent is ordered to start."""
        self._attempts.add((action.trial, action.attempt))

    def joined(self, holds: Collection[tuple[int, int]]) -> None:
        """Take over what a joining agent runs, or has messages of."""
        self._attempts = set(holds)

    def ended(self, events: Iterable[Event]) -> None:
        """Drop the attempts that ended by these events: an attempt's end is its last message."""
        for event in events:
            if isinstance(event, AttemptEnded):
                self._attempts.discard((event.trial, event.attempt))
