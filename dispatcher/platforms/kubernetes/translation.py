"""An order as it must be in a pod: its paths and its variables."""

from __future__ import annotations

from msgspec.structs import replace

from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.clusters.moved import moved_config, moved_order
from dispatcher.platforms.kubernetes.section import KubernetesService
from trial_runtime.agent.config import AgentConfig


def order_there(
    order: AllocationOrder, section: KubernetesService, *, token: str
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


def config_there(config: AgentConfig, section: KubernetesService, *, token: str) -> AgentConfig:
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
    kind = section.allocation_kind
    there = moved_config(
        config,
        folder,
        section.environment,
        token=token,
        weights_root=root,
        read_roots=dict(zip(config.read_roots, section.weights_read_roots, strict=False)),
        code=section.code_folder or "",
        rank_variable=kind.rank_variable,
    )
    if there.probe is not None and kind.answer_file:
        there = replace(there, probe=replace(there.probe, answer=kind.answer_file))
    return replace(
        there,
        launched=kind.launches,
        renewal=kind.renewal,
        trial=replace(there.trial, checkpoint_variable=kind.checkpoint_variable),
    )
