"""The order of an allocation whose machine sees the experiment's folder: pure but for variables."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

import trial_runtime
from dispatcher.platforms.agents.named_variables import named_variables
from dispatcher.platforms.allocations.allocation import AllocationOrder
from trial_runtime.agent.config import AgentConfig
from trial_runtime.safe_path import module_arguments

#: For a Python of any version that trials run with.
_MODULE = tuple(module_arguments("trial_runtime.agent", (3, 9)))


def order_of(name: str, config: AgentConfig, home: Path) -> AllocationOrder:
    """The order of one agent, which keeps to a folder of its worker.

    A platform whose machines do not see this folder, or our code, changes the configuration and
    the environment for them.

    Args:
        name: of the allocation.
        config: as on this machine, with its ticket.
        home: the worker's folder.
    """
    runtime = str(Path(trial_runtime.__file__).parent.parent)
    options = () if config.remote is None else config.remote.options
    variables = named_variables(config.trial.environment) | named_variables(options)
    return AllocationOrder(
        name,
        replace(config, experiment_folder=str(home), run_folder=""),
        _MODULE,
        {**variables, "PYTHONPATH": runtime},
        log=str(home / "logs" / "agent.log"),
        nodes=config.nodes,
    )
