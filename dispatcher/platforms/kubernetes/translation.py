"""An order as it must be in a pod: its paths and its variables."""

from __future__ import annotations

from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.clusters.moved import moved_config, moved_order
from dispatcher.platforms.kubernetes.section import KubernetesSection
from trial_runtime.agent.config import AgentConfig

#: Gives each pod of an indexed Job its rank. Servers before 1.21 know no such Jobs.
RANK_VARIABLE = "JOB_COMPLETION_INDEX"


def order_there(
    order: AllocationOrder, section: KubernetesSection, *, token: str
) -> AllocationOrder:
    """An order with the paths and variables of a pod.

    Args:
        order: as it would be on this machine.
        section: the service's part of the file.
        token: of the share below the weights root.

    Raises:
        LookupError: a reference leads nowhere.
    """
    config = config_there(order.config, section, token=token)
    return moved_order(order, config, section.environment)


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
    if config.remote is not None:  # views of a store lie in the pod; an agent removes all it finds
        root = f"{root}/{own_part}" if root else f"{folder}/weights"
    return moved_config(
        config,
        folder,
        section.environment,
        token=token,
        weights_root=root,
        read_roots=dict(zip(config.read_roots, section.weights_read_roots, strict=False)),
        code=section.code_folder or "",
        rank_variable=RANK_VARIABLE,
    )
