"""All that a platform gets to make one worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic

from dispatcher.experiment.fields import Section
from dispatcher.experiment.platform_base import S
from dispatcher.platforms.allocations.allocation import service_label
from dispatcher.platforms.allocations.section import AllocationService
from dispatcher.platforms.archives import Archives
from dispatcher.remote_python.findings import HostNeeds
from trial_runtime.agent.config import AgentConfig


@dataclass(frozen=True, slots=True)
class Given(Generic[S]):
    """A worker and its surroundings. Nothing here blocks but :attr:`archives` and :attr:`token`.

    Attributes:
        worker: its name, which is unique in the experiment and safe in names of files.
        section: the service's part of the experiment file.
        part: the section of this worker alone, as ``planned`` of the service's section gave it.
        config: the configuration that an agent on this machine would get: how trials run, where
            weights go, and in ``config.head`` by which address and keys the head is reached.
        folder: the experiment's folder on this machine.
        door: address and port at which the head listens on this machine; None for workers that
            reach it by a socket file.
        archives: packs the code and our runtime at the first call. Raises ``BackendError``.
        token: that of the share below the weights root, for
            :func:`trial_runtime.agent.link.path_mapping.on_another_host`. Raises ``BackendError``.
        known: whether a head before this one may have left an agent, or attempts, there.
        leads: whether this head still leads: one that does not changes nothing anywhere.
        tunnel: the socket file that a tunnel is to lead to; None but for ``reach = "tunnel"``.
        needs: those of trials, as a machine is checked for them.
    """

    worker: str
    section: S
    part: Section
    config: AgentConfig
    folder: Path
    door: tuple[str, int] | None
    archives: Callable[[], Archives] = field(repr=False)
    token: Callable[[], str] = field(repr=False)
    known: bool = False
    leads: Callable[[], bool] = field(default=lambda: True, repr=False)
    tunnel: Path | None = None
    needs: HostNeeds = field(default_factory=HostNeeds, repr=False)

    @property
    def home(self) -> Path:
        """The folder of this worker alone, as its agent sees it, too."""
        if isinstance(self.section, AllocationService):
            homes = self.section.homes(self.config.experiment, self.folder)
            return homes / self.worker
        return self.records

    @property
    def records(self) -> Path:
        """The folder of what this machine alone notes about the worker."""
        return self.folder / "agents" / self.worker


@dataclass(frozen=True, slots=True)
class ServiceGiven(Generic[S]):
    """A service of allocations and its surroundings. Nothing here blocks but :attr:`archives` and
    :attr:`token`.

    Attributes:
        label: the beginning of the names of all its allocations, and of nobody else's; a dash
            follows.
        experiment: the experiment's id.
        section: the service's part of the experiment file.
        folder: the experiment's folder on this machine.
        door: address and port at which the head listens on this machine; None for workers that
            reach it by a socket file.
        archives: packs the code and our runtime at the first call. Raises ``BackendError``.
        token: that of the share below the weights root. Raises ``BackendError``.
        leads: whether this head still leads: one that does not changes nothing anywhere.
    """

    label: str
    experiment: str
    section: S
    folder: Path
    door: tuple[str, int] | None
    archives: Callable[[], Archives] = field(repr=False)
    token: Callable[[], str] = field(repr=False)
    leads: Callable[[], bool] = field(default=lambda: True, repr=False)

    @property
    def probed(self) -> Path:
        """The file with what a probe has found where its allocations are, if that is wanted."""
        return self.folder / "agents" / f"{self.label}.probed"


def service_given(given: Given[S]) -> ServiceGiven[S]:
    """All that a service gets, from what its first worker got."""
    experiment = given.config.experiment
    return ServiceGiven(
        service_label(experiment, given.worker),
        experiment,
        given.section,
        given.folder,
        given.door,
        given.archives,
        given.token,
        given.leads,
    )
