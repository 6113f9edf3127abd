"""The interface of a backend that runs attempts itself, without our agent."""

from __future__ import annotations

from typing import Protocol

from dispatcher.core.actions import WorkerAction
from dispatcher.core.events import Event


class ServiceBackend(Protocol):
    """A worker of a service that runs attempts. Thread: one of its own; methods may block,
    though nothing else is done for this worker meanwhile: silence of ``leases.suspect`` makes it
    suspect, one of ``leases.lost`` loses it.

    Any exception sets it aside: all that it ran is lost, and another one is made when a worker is
    wanted there again. So does an event that it may not report: of another worker, or of an attempt
    that it was neither ordered to start nor has reported to hold.
    """

    def perform(self, action: WorkerAction) -> None:
        """Carry out an action. ``LaunchWorker``: look what a head before us has left, and report
        ``WorkerJoined`` with all that runs or has messages which were not acknowledged.
        ``StartAttempt``: idempotent by attempt. ``StopAttempt``: stop it, by force after its
        grace; one that nobody knows is no error."""
        ...

    def check(self) -> list[Event]:
        """Report the events since the last time, in order. Called about four times a second, and
        not again before the events of the last time are on disk."""
        ...

    def acknowledge(self) -> None:
        """Note that all events of :meth:`check` so far are on disk; those that are not acknowledged
        when the next head comes have to be reported again."""
        ...

    def close(self, *, leave_running: bool, deadline_s: float) -> None:
        """End what runs, or leave it to the next head. Block at most that long."""
        ...
