"""The order and the configuration of an agent in a container, which has paths and variables of its
own: those of this machine mean nothing there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as replaced

from msgspec.structs import replace

from dispatcher.platforms.agents.carried_secrets import environment_there, variables_of_agent
from dispatcher.platforms.allocations.allocation import AllocationOrder
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.link.path_mapping import on_another_host

#: A folder of this machine, which no container has.
_OF_HERE = "PYTHONPATH"


def moved_order(
    order: AllocationOrder, config: AgentConfig, own: Mapping[str, str]
) -> AllocationOrder:
    """An order with the variables of a container; references are resolved here, where they mean
    something, and name variables of the agent there.

    Args:
        order: as it would be on this machine.
        config: as it is to be there.
        own: the variables that its section adds.

    Raises:
        LookupError: a reference leads nowhere.
    """
    given = {key: value for key, value in order.environment.items() if key != _OF_HERE}
    environment = given | variables_of_agent(order.config.trial.environment, own)
    return replaced(order, config=config, environment=environment, log="")


def moved_config(
    config: AgentConfig,
    folder: str,
    own: Mapping[str, str],
    *,
    token: str,
    weights_root: str = "",
    read_roots: Mapping[str, str] | None = None,
    code: str = "",
    rank_variable: str,
) -> AgentConfig:
    """A configuration with the paths of a container.

    Args:
        config: as it would be on this machine.
        folder: the worker's, there.
        own: the variables that its section adds.
        token: of the share below the weights root.
        weights_root: where it is there; empty: at the same path. With weights in a store: a folder
            there for views of it.
        read_roots: paths there of the read roots that are not at the same ones.
        code: the folder of the code there; empty: at the same path.
        rank_variable: of the environment, by which nodes know their rank.
    """
    moved = dict(read_roots or {})
    there = on_another_host(config, token=token, weights_root=weights_root, read_roots=moved)
    trial = replace(
        config.trial,
        code_directory=code or config.trial.code_directory,
        environment=environment_there(config.trial.environment, own),
        own_folders=True,
    )
    return replace(
        there,
        experiment_folder=folder,
        run_folder="",  # known there
        rank_variable=rank_variable,
        trial=trial,
    )
