"""The training service ``ray``: trials in actors of a Ray cluster."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dispatcher.experiment.addresses import is_loopback
from dispatcher.experiment.fields import Text
from dispatcher.experiment.needs import Amount, Amounts, GpuNumber
from dispatcher.platforms.allocations.section import Line, PlaceMemory, WallTime
from dispatcher.platforms.clusters.section import ClusterService
from dispatcher.platforms.ray.options import ActorOptions, RuntimeEnv


def _check_word(text: str) -> str:
    if not text.isprintable() or any(character.isspace() for character in text):
        raise ValueError(f"must be an address without blanks, not {text!r}")
    return text


#: The address of a cluster that is started for the experiment.
START = "start"


def _check_address(text: str) -> str:
    host, _, port = _check_word(text).removeprefix("ray://").rpartition(":")
    fits = host and "/" not in host and port.isdecimal() and int(port) <= 65535
    if text not in ("auto", START) and not fits:
        raise ValueError(f"must be HOST:PORT, ray://HOST:PORT, auto or start, not {text!r}")
    return text


class RayServiceConfig(ClusterService):
    """Run trials in actors of a Ray cluster, below an agent in each."""

    platform: Annotated[Literal["ray"], Field(description="Kind of place where trials run: `ray`.")]
    address: Annotated[
        Annotated[Text, AfterValidator(_check_address)],
        Field(
            description="The cluster: `HOST:PORT` where this machine is one of its nodes, "
            "`ray://HOST:PORT` from outside; `auto` for the one that runs on this machine, or that "
            "`RAY_ADDRESS` names; `start` for one of this machine alone that is started for the "
            "experiment, and ends with it."
        ),
    ] = "auto"
    cpus: Annotated[Amount, Field(description="CPUs of an actor, by Ray's count.")] = 1.0
    gpus: Annotated[GpuNumber, Field(description="GPUs of an actor, by Ray's count.")] = 0.0
    memory: Annotated[
        PlaceMemory | None,
        Field(description="Memory of an actor, by Ray's count; not counted if not given."),
    ] = None
    actor_resources: Annotated[
        Amounts,
        Field(description="Further resources of an actor that nodes of the cluster name."),
    ] = Field(default_factory=dict)
    wall_time: Annotated[
        WallTime | None,
        Field(
            description="When an actor has to end, so that others get its place; the next one is "
            "asked for then. Never if not given."
        ),
    ] = None
    runtime_env: Annotated[
        RuntimeEnv,
        Field(description="Ray's runtime environment of the actors, such as `{pip: [timm]}`."),
    ] = Field(default_factory=dict)
    options: Annotated[
        ActorOptions,
        Field(
            description="Any other option of an actor, such as `{accelerator_type: A100}` or "
            "`{scheduling_strategy: SPREAD}`."
        ),
    ] = Field(default_factory=dict)
    python: Annotated[
        Line | None,
        Field(
            description="Python on this machine with Ray, in the cluster's version; the one that "
            "bequeath runs with if not given."
        ),
    ] = None
    trial_python: Annotated[
        Line | None,
        Field(
            description="Python of the nodes, at least 3.9, with what trials import; the one in "
            "which Ray runs actors if not given."
        ),
    ] = None

    @property
    def python_there(self) -> str:
        """See :attr:`ClusterService.python_there`."""
        return self.trial_python or super().python_there

    @property
    def gpus_asked(self) -> float:
        """See :attr:`ClusterService.gpus_asked`: Ray may lend parts of one."""
        return float(math.ceil(self.gpus))

    @property
    def starts(self) -> bool:
        """Whether its cluster is started for it."""
        return self.address == START

    @property
    def wall_s(self) -> float | None:
        """How long an actor has its place (seconds); None: for as long as it likes."""
        return self.wall_time

    @property
    def nodes_are_here(self) -> bool:
        """Whether all nodes are this machine: its head node is known by the loopback. Clients may
        have come through a port that is forwarded."""
        host, _, port = self.address.rpartition(":")
        return self.starts or (port != "" and "/" not in host and is_loopback(host))

    @property
    def demand(self) -> dict[str, float]:
        """The resources that an actor asks for, by Ray's names."""
        wanted = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory or 0}
        return {name: float(n) for name, n in {**wanted, **self.actor_resources}.items() if n}
