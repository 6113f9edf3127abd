"""How processes of attempts come to be. The agent knows runners by this Protocol only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from trial_runtime.agent.attempt import Attempt, Exit

#: Called in the agent's loop when the process (or function) of an attempt is over.
OnExit = Callable[[Attempt, Exit], None]
#: Called in the agent's loop when the process is there.
OnStart = Callable[[Attempt], None]


class CannotStart(Exception):
    """Raised by a runner when an attempt's process cannot be made; says why, in a sentence."""


class Runner(Protocol):
    """One way to run attempts. All methods are called in the agent's loop and never block.

    ``sweeps_at_once``: leftovers are looked for at the end of each attempt, rather than
    once a second (where that would cost more than the attempt itself).
    """

    sweeps_at_once: bool

    def launch(self, attempt: Attempt) -> None:
        """Begin; later the agent hears of the start and of the exit. Raises CannotStart."""
        ...

    def tell_to_stop(self, attempt: Attempt, reason: str) -> bool:
        """Make ``should_stop`` true; false if the attempt is not there to hear it."""
        ...

    def terminate(self, attempt: Attempt) -> None:
        """SIGTERM, or nothing where a process is shared with other attempts."""
        ...

    def kill(self, attempt: Attempt) -> None:
        """End it now, whatever it does."""
        ...

    def forget(self, attempt: Attempt) -> None:
        """The attempt is over: give back what was held for it."""
        ...

    def own_pids(self) -> set[int]:
        """Children of the agent that are no leftovers."""
        ...

    def close(self) -> None:
        """Kill all that is left."""
        ...
