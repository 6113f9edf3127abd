"""Runners, which start the processes of attempts. The agent uses them by this Protocol only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.trials.endpoint import Connection, Heard


class Runner(Protocol):
    """One way to run attempts. All methods are called in the agent's loop and never block.

    ``sweeps_at_once``: leftovers are looked for at the end of each attempt, rather than
    once a second (where that would cost more than the attempt itself).
    """

    sweeps_at_once: bool

    def launch(self, attempt: Attempt) -> None:
        """Begin an attempt; events tell of its start and its exit. Raises CannotStart."""
        ...

    def hear(self, connection: Connection, messages: Sequence[Heard]) -> None:
        """Take note of what a process of this runner has sent; metrics are others' business."""
        ...

    def tell_to_stop(self, attempt: Attempt, reason: str) -> bool:
        """Make ``should_stop`` true; returns false if no process of the attempt is connected."""
        ...

    def terminate(self, attempt: Attempt) -> None:
        """Send SIGTERM."""
        ...

    def kill(self, attempt: Attempt) -> None:
        """Send SIGKILL."""
        ...

    def forget(self, attempt: Attempt) -> None:
        """Free the resources held for an attempt that is over."""
        ...

    def own_pids(self) -> set[int]:
        """The children of the agent that are no leftovers."""
        ...

    def close(self) -> None:
        """Kill all processes that are left."""
        ...
