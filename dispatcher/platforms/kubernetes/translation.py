"""An order as it must be in a pod: its paths and its variables."""

from __future__ import annotations

from dataclasses import replace as replaced

from msgspec.structs import replace

from dispatcher.platforms.agents.carried_secrets import environment_there, variables_of_agent
from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.kubernetes.section import KubernetesSection
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.link.path_mapping import on_another_host

#: Gives each pod of an indexed Job its rank. Servers before 1.21 know no such Jobs.
RANK_VARIABLE = "JOB_COMPLETION_INDEX"

#: A folder of this machine, which no pod has.
_OF_HERE = "PYTHONPATH"


def order_there(
    order: AllocationOrder, section: KubernetesSection, *, token: str
) -> AllocationOrder:
    """An order with the paths and variables of a pod.

    References are resolved here, where they mean something; there they name variables of the agent.

    Args:
        order: as it would be on this machine.
        section: the service's part of the file.
        token: of the share below the weights root.

    Raises:
        LookupError: a reference leads nowhere.
    """
    given = {key: value for key, value in order.environment.items() if key != _OF_HERE}
    wanted = order.config.trial.environment
    environment = given | variables_of_agent(wanted, section.environment)
    config = config_there(order.config, section, token=token)
    return replaced(order, config=config, environment=environment, log="")


def config_there(config: AgentConfig, section: KubernetesSection, *, token: str) -> AgentConfig:
    """The configuration of an agent with the paths of a pod.

    Args:
        config: as it would be on this machine.
        section: the service's part of the file.
        token: of the share below the weights root.
    """
    own_part = f"{config.experiment}/{config.worker}"
    folder = f"{section.work_folder}/experiments/{own_part}"
    root = section.weights_root or ""
    if config.remote is not None or config.no_weights:
        # What lies there is the pod's own: of views of a store an agent removes all that it finds.
        root = f"{root}/{own_part}" if root else f"{folder}/weights"
    moved = dict(zip(config.read_roots, section.weights_read_roots, strict=False))
    there = on_another_host(config, token=token, weights_root=root, read_roots=moved)
    trial = replace(
        config.trial,
        code_directory=section.code_folder or config.trial.code_directory,
        environment=environment_there(config.trial.environment, section.environment),
        own_folders=True,
    )
    return replace(
        there,
        experiment_folder=folder,
        run_folder="",  # known there
        rank_variable=RANK_VARIABLE,
        trial=trial,
    )
