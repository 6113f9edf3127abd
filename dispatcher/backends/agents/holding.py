"""What an agent has been given and has not ended yet: only one that holds nothing is replaced."""

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
        """It is told to start this one."""
        self._attempts.add((action.trial, action.attempt))

    def joined(self, holds: Collection[tuple[int, int]]) -> None:
        """It said what it runs, or has words of."""
        self._attempts = set(holds)

    def ended(self, events: Iterable[Event]) -> None:
        """It said these: an attempt's end is its last word."""
        for event in events:
            if isinstance(event, AttemptEnded):
                self._attempts.discard((event.trial, event.attempt))
