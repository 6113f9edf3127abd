"""Runners, which start the processes of attempts, and the parts of the agent that they work with.

The agent uses them by this Protocol only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.base.loop import Watch
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.events import AgentEvents
from trial_runtime.agent.processes.children import ChildWatch
from trial_runtime.agent.runners.output import Outputs
from trial_runtime.agent.runners.trial_dialect import TrialDialect
from trial_runtime.agent.trials.endpoint import Connection, Heard, Speaker, TrialEndpoint
from trial_runtime.session_file import remove_session


@dataclass(frozen=True)
class RunnerContext:
    """Parts of the agent for a runner, which notes starts and ends of attempts in ``events``.

    ``environment`` is called at each start, when references in it are resolved.
    """

    spec: TrialSpec
    dialect: TrialDialect
    endpoint: TrialEndpoint
    outputs: Outputs
    watch: Watch
    children: ChildWatch
    environment: Callable[[], dict[str, str]]
    events: AgentEvents


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


class ProcessRunner:
    """Base of runners that start a process for each attempt."""

    def __init__(self, context: RunnerContext) -> None:
        self._context = context
        self._speakers: dict[tuple[int, int], Speaker] = {}

    def _admit(self, attempt: Attempt) -> None:
        """Accept connections of an attempt's processes."""
        self._speakers[attempt.key] = self._context.endpoint.admit(attempt.session.routing, attempt)

    def hear(self, connection: Connection, messages: Sequence[Heard]) -> None:
        """Do nothing: the exit of a process says all."""

    def forget(self, attempt: Attempt) -> None:
        remove_session(attempt.session_path)
        speaker = self._speakers.pop(attempt.key, None)
        if speaker is not None:
            self._context.endpoint.dismiss(speaker)

    def own_pids(self) -> set[int]:
        return self._context.children.pids()
