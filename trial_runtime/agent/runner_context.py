"""The parts of the agent that every runner of attempts works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.output import Outputs
from trial_runtime.agent.processes import ChildWatch
from trial_runtime.agent.runners import OnExit, OnStart
from trial_runtime.agent.trial_endpoint import TrialEndpoint
from trial_runtime.agent.watch import Watch


@dataclass(frozen=True)
class RunnerContext:
    """Parts of the agent for a runner, and the callbacks for starts and ends of attempts.

    ``environment`` is called at each start, when references in it are resolved.
    """

    spec: TrialSpec
    endpoint: TrialEndpoint
    outputs: Outputs
    watch: Watch
    children: ChildWatch
    environment: Callable[[], dict[str, str]]
    on_start: OnStart
    on_exit: OnExit
