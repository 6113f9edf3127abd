"""A platform with the service of ours that it is tried on, as suites take it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from dispatcher.experiment.loader import build_experiment
from dispatcher.platforms.allocations.allocation import (
    AllocationOrder,
    allocation_name,
    service_label,
)
from dispatcher.platforms.allocations.order import order_of
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from dispatcher.platforms.registry import platform_of
from tests.support.services.server import PlayedService
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint

EXPERIMENT = "abc123"


class PlayedPlatform(Protocol):
    """A platform and its service."""

    def serving(
        self, folder: Path, places: int
    ) -> contextlib.AbstractContextManager[PlayedService]:
        """A service for a while; what its contract has against anything fails the test.

        Args:
            folder: for the files of its jobs.
            places: jobs that run at once.
        """
        ...

    def section(self, service: PlayedService, folder: Path) -> dict[str, Any]:
        """What stands below ``trainingService``, without ``python``, ``mounts``, ``sharedFolder``,
        ``allocations`` and ways to the head. Jobs see this machine's folders at their paths.

        Args:
            service: that is asked.
            folder: for files that it names, such as one with a token.
        """
        ...


def platform_named(text: str) -> PlayedPlatform:
    """The one that ``module:NAME`` names."""
    module, _, name = text.partition(":")
    made: PlayedPlatform = getattr(import_module(module), name)
    return made


def whole_section(
    played: PlayedPlatform, service: PlayedService, folder: Path, **keys: Any
) -> dict[str, Any]:
    """A section whose jobs can run here. They see this machine's folders under another path, which
    is a link, so that a path that nobody has translated leads nowhere.

    Args:
        played: the platform.
        service: that is asked.
        folder: for its files, and what its jobs see of this machine.
        keys: further ones, or others.
    """
    shared, there = folder / "shared", folder / "there"
    shared.mkdir(exist_ok=True)
    if not there.is_symlink():
        there.symlink_to(shared)
    return {
        **played.section(service, folder),
        "python": sys.executable,
        "sharedFolder": str(shared),
        "mounts": {str(shared): str(there)},
        **({} if keys.get("bringCode") else {"codeFolder": str(folder)}),
        "allocations": 2,
        "headAddress": "127.0.0.1",
        "probe": False,
        **keys,
    }


class Orders:
    """Orders for the jobs of a section, without a head, and allocators that give them.

    Args:
        section: below ``trainingService``.
        folder: of the experiment.
        leads: whether the head of the allocators leads.
    """

    def __init__(self, section: Mapping[str, Any], folder: Path) -> None:
        self.folder = folder
        self.leads = True
        weights = Path(next(iter(section["mounts"]))) / "weights"
        weights.mkdir(exist_ok=True)
        config = build_experiment({
            "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
            "tuner": {"name": "Random"},
            "trialCommand": "true",
            "trialCodeDirectory": str(folder),
            "trialConcurrency": 1,
            "weightsRoot": str(weights),
            "experimentWorkingDirectory": str(folder / "experiments"),
            "trainingService": dict(section),
        })  # fmt: skip
        self.service: Any = config.services[0]
        self.platform: Any = platform_of(self.service)
        self.weights = weights
        self.label = service_label(EXPERIMENT, "worker")

    @property
    def given(self) -> ServiceGiven[Any]:
        """The service and its surroundings."""
        return ServiceGiven(
            self.label,
            EXPERIMENT,
            self.service,
            self.folder,
            ("127.0.0.1", 1),
            _nothing,
            lambda: "TOKEN",
            lambda: self.leads,
        )

    def allocator(self, clock: Any = None) -> HttpJobsAllocator:
        """Another one, as a head that begins makes it."""
        jobs = self.platform.jobs(self.service, self.label)
        return HttpJobsAllocator(self.given, jobs, **({} if clock is None else {"clock": clock}))

    def order(
        self, number: int = 1, *, worker: str = "worker", ticket: str = "s3cret-ticket"
    ) -> AllocationOrder:
        """An order whose job waits for ever: its agent reads a line that nobody writes.

        Args:
            number: of the incarnation.
            worker: its name.
            ticket: of the incarnation.
        """
        config = AgentConfig(
            worker=worker,
            slots=1,
            head=Endpoint("tcp://127.0.0.1:1", "routing-s3cret"),
            epoch=1,
            run_folder="/run/here",
            experiment_folder=str(self.folder),
            trial=TrialSpec(str(self.folder), command="true"),
            weights_root=str(self.weights),
            experiment=EXPERIMENT,
        )
        home = self.service.homes(EXPERIMENT, self.folder) / worker
        name = allocation_name(self.label, worker, number)
        made = order_of(name, replace(config, ticket=ticket), home)
        waits = ("-c", "import signal; signal.pause()")
        environment = {**made.environment, "SECRET": "s3cret-value"}
        return AllocationOrder(
            made.name, made.config, waits, environment, log=made.log, nodes=made.nodes
        )


def _nothing() -> Any:
    raise AssertionError("nothing is brought anywhere")
