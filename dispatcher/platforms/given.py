"""All that a platform gets to make one worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from dispatcher.backends.ssh import Archives
from dispatcher.experiment.fields import Section
from dispatcher.experiment.service import ServiceConfig
from trial_runtime.agent.config import AgentConfig

S = TypeVar("S", bound=ServiceConfig)


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
