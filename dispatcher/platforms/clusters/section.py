"""The keys that sections of clusters have in common."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from pydantic import Field

from dispatcher.experiment.addresses import HeadAddress, is_any, is_loopback
from dispatcher.experiment.fields import Switch, VariablesThere
from dispatcher.experiment.service import PlannedWorker
from dispatcher.platforms.allocations.section import AllocationService, BringCode
from dispatcher.platforms.clusters.jump import JumpHostConfig


class ClusterService(AllocationService):
    """Run trials in allocations of a cluster."""

    environment: VariablesThere = Field(default_factory=dict)
    bring_code: BringCode = False
    probe: Annotated[
        Switch,
        Field(
            description="Look for what trials need in one allocation before the first trial: "
            "Python and its modules, the way to the head, weights, room."
        ),
    ] = True
    head_address: Annotated[
        HeadAddress,
        Field(
            description="Address of this machine at which agents reach the head, `HOST` or "
            "`HOST:PORT`, by CURVE; `channel` must listen there. `127.0.0.1` says that all nodes "
            "are this machine. The one on which `channel` listens if not given."
        ),
    ] = None

    jump: Annotated[
        JumpHostConfig | None,
        Field(
            description="Machine with an SSH server by which agents reach the head: "
            "`user@host:port`, or keys. Nodes log in to it, and run nothing there."
        ),
    ] = None

    @property
    def nodes_are_here(self) -> bool:
        """Whether it is certain that all nodes are this machine."""
        return False

    @property
    def python_there(self) -> str:
        """How the Python of the nodes is called."""
        return "python3"

    @property
    def gpus_asked(self) -> float:
        """How many GPUs a node of a place is asked for with, as far as the section says it."""
        return 0.0

    def is_reached(self, listens_on: str) -> bool:
        """Whether nodes may reach the head directly, as far as the file says. They are other
        machines, unless it names this one's loopback.

        Args:
            listens_on: the host on which the head listens.
        """
        certain = self.head_address is not None or self.nodes_are_here
        return certain or not (is_loopback(listens_on) or is_any(listens_on))

    def planned(self, usual: int, taken: Collection[str]) -> tuple[PlannedWorker, ...]:
        """See :meth:`AllocationService.planned`: all reach the head by the same address."""
        address = self.head_address if self.channel in ("auto", "direct") else None
        planned = super().planned(usual, taken)
        return tuple(each._replace(address=address) for each in planned)
