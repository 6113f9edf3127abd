"""The dialect of an experiment's trials, picked by the agent's configuration."""

from __future__ import annotations

from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.runners.trial_dialect import TrialDialect


def dialect_of(config: AgentConfig, rank: int = 0) -> TrialDialect:
    """The dialect of the trials that an agent runs.

    Args:
        config: of the agent.
        rank: of the node, where a trial has several.
    """
    if config.trial.nni:
        from trial_runtime.agent.nni import NniDialect

        return NniDialect(config, rank)
    if config.trial.program is not None:
        from trial_runtime.agent.programs.dialect import ProgramDialect

        return ProgramDialect(config, config.trial.program)
    return TrialDialect(config, rank)
