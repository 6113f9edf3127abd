"""The runner that an experiment's trials need."""

from __future__ import annotations

import logging

from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.runners.forked import ForkedRunner
from trial_runtime.agent.runners.fresh import FreshRunner
from trial_runtime.agent.runners.runner import Runner, RunnerContext
from trial_runtime.agent.runners.scripts import script_of
from trial_runtime.agent.runners.warm import WarmRunner

_log = logging.getLogger("bequeath.agent")


def runner_of(context: RunnerContext, config: AgentConfig) -> Runner:
    """Make the runner of an agent on one node.

    Args:
        context: what runners work with.
        config: the agent's.
    """
    spec = config.trial
    if spec.reuse == "inProcess" and spec.function is not None:
        workers_log = f"{config.experiment_folder}/logs/workers.log"
        return WarmRunner(context, config.run_folder, workers_log, config.slots)
    if spec.reuse == "forked":
        if spec.command is None or (spec.program is None and script_of(spec.command) is not None):
            return ForkedRunner(context)
        _log.warning("reuseMode forked: this command gets a process of its own for each trial")
    return FreshRunner(context)
