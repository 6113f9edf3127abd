"""The parts of the agent that every runner of attempts works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trial_runtime.agent.base.watch import Watch
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.events import AgentEvents
from trial_runtime.agent.processes.children import ChildWatch
from trial_runtime.agent.runners.output import Outputs
from trial_runtime.agent.runners.trial_dialect import TrialDialect
from trial_runtime.agent.trials.endpoint import TrialEndpoint


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
