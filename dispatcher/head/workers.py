"""The agents of an experiment, on this machine and on others: started, asked and ended together."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dispatcher.channel import FolderEndpoint, Router
from dispatcher.control.messages import ReadArguments
from dispatcher.control.server import PendingRead
from dispatcher.core.ids import WorkerId
from dispatcher.errors import DispatcherError, PermanentBackendError, UserError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.service import LOCAL
from dispatcher.experiment.weights_place import RootUrl
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.drivers import SharedParts, WorkerDrivers
from dispatcher.head.endpoints import HeadEndpoints, line_of, ways_of
from dispatcher.head.files_read import FilesRead
from dispatcher.platforms.agents.driver import AgentDriver
from dispatcher.platforms.agents.file_asks import KeepLogs, keep_no_logs
from dispatcher.platforms.agents.identity import agent_routing_id
from dispatcher.platforms.agents.self_report import Statistics
from dispatcher.platforms.allocations.process import Load, always_enough
from dispatcher.platforms.driver import Driver
from dispatcher.platforms.given import Given
from dispatcher.platforms.platform import Platform
from dispatcher.platforms.registry import platform_of
from dispatcher.wiring.agents import demand_references, worker_config
from dispatcher.wiring.archives import packer
from dispatcher.wiring.host_needs import host_needs
from dispatcher.wiring.places import Place, places
from dispatcher.wiring.storage_domains import Share, Shares
from dispatcher.wiring.weights import weights_root
from trial_runtime.agent.config import AgentConfig
from trial_runtime.resource_wire import Samples
from trial_runtime.weights.storage.share import lay_token
from trial_runtime.wire import MAX_LOG_END_BYTES


class Workers:
    """Drivers of all agents, by the names of their workers.

    Args:
        config: names the workers.
        folder: the experiment's.
        router: on which agents reach the head.
        endpoints: as :func:`~dispatcher.head.endpoints.open_endpoints` returned them.
        epoch: this head's.
        sockets: the folder of this machine's socket files.
        known: workers that the journal knows: agents of theirs may run, with trials.
        leads: whether this head still leads.
        keep_logs: gets the ends of logs that agents hand in; called in the engine's thread.
        load: how much there is to do for a worker; called in the engine's thread.
        clock: the engine's, in seconds since the epoch.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        folder: ExperimentFolder,
        router: Router,
        endpoints: HeadEndpoints,
        *,
        epoch: int,
        sockets: Path,
        known: Collection[str],
        leads: Callable[[], bool],
        keep_logs: KeepLogs = keep_no_logs,
        load: Callable[[str], Load] = lambda worker: always_enough(),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keep_logs = keep_logs
        self._load = load
        self._clock = clock
        self._config = config
        self._folder = folder
        self._endpoints = endpoints
        self._epoch = epoch
        self._sockets = sockets
        self._leads = leads
        root = str(weights_root(config, folder))
        demand_references(config)
        self._archives = packer(config, folder)
        # A store has no token: opening it fails if something is wrong with it.
        # Nor has a root that no weights of ours go to: no worker needs to have it mounted.
        is_store = isinstance(config.weights_root, RootUrl) or not config.keeps_weights
        lay = cache(lambda: "" if is_store else _token_of(root))
        self._shared = SharedParts()
        self._shares = Shares(config, folder.keys, lay)
        self.drivers: dict[str, Driver] = {
            place.worker: self._driver(router, place, place.worker in known)
            for place in places(config)
        }
        self._folders_endpoint = FolderEndpoint(router, leads)
        for place in places(config):
            ways = ways_of(config, place)
            if "folder" in ways:
                routing_id = agent_routing_id(folder.path, place.worker)
                line = line_of(place, folder.path)
                self._folders_endpoint.add(line, routing_id, may_come=len(ways) > 1)
        self._folders_endpoint.open()

    @property
    def foreign(self) -> frozenset[str]:
        """Workers that the code of another package drives."""
        return frozenset(name for name, driver in self.drivers.items() if driver.judged)

    @property
    def workers(self) -> list[WorkerId]:
        """The names of all workers."""
        return [WorkerId(name) for name in self.drivers]

    def refused(self) -> dict[str, dict[str, int]]:
        """Count the messages of trials and strangers that agents refused, by agent and reason."""
        refused = {name: one.refused for name, one in self._statistics()}
        if list(refused) == [LOCAL]:
            return {"agent": refused[LOCAL]}
        return {f"agent {name}": counts for name, counts in refused.items()}

    def samples(self) -> dict[str, Samples]:
        """Return the newest samples of trials and devices, by worker."""
        return {name: one.samples for name, one in self._statistics()}

    def ways(self) -> dict[str, str]:
        """Return by which way each agent that has joined reaches this head, by worker."""
        return {name: one.way for name, one in self._statistics() if one.joined and one.way}

    def read(self, wanted: ReadArguments) -> PendingRead:
        """Ask an agent for files of an attempt. Thread: the engine's.

        Raises:
            UserError: the worker is none of ours, or has no agent.
        """
        driver = self.drivers.get(wanted.worker)
        if not isinstance(driver, AgentDriver):
            raise UserError(f"there is no agent of {wanted.worker!r} to be asked for files")
        return FilesRead(driver.files, wanted)

    def _statistics(self) -> Iterator[tuple[str, Statistics]]:
        for name, driver in self.drivers.items():
            statistics = driver.statistics()
            if statistics is not None:
                yield name, statistics

    def close(self, *, leave_running: bool, deadline_s: float) -> None:
        """End all agents and their trials, or leave them to the next head.

        Blocks as long as the slowest, at most ``deadline_s`` and some seconds.

        Args:
            leave_running: whether agents and trials go on for the next head.
            deadline_s: seconds for all of them together.
        """
        until = time.monotonic() + deadline_s
        for driver in self.drivers.values():
            driver.part(leave_running=leave_running, deadline_s=deadline_s)

        def close(driver: Driver) -> None:
            left_s = max(0.0, until - time.monotonic())
            driver.close(leave_running=leave_running, deadline_s=left_s)

        with ThreadPoolExecutor(len(self.drivers)) as threads:
            list(threads.map(close, self.drivers.values()))
        self._shared.close()
        self._folders_endpoint.close(remove=not leave_running)

    def _driver(self, router: Router, place: Place, known: bool) -> Driver:
        platform, ways = platform_of(place.service), ways_of(self._config, place)
        share = self._shares.of(place)
        config = self._agent_config(place, share)
        given: Given[Any] = Given(
            place.worker,
            place.service,
            place.part,
            config,
            self._folder.path,
            self._endpoints.tcp if {"tcp", "jump"} & {*ways} else None,
            self._archives,
            share.token,
            known=known,
            tunnel=self._endpoints.tunnel if "tunnel" in ways else None,
            leads=self._leads,
            needs=host_needs(self._config, place),
        )
        if "logs" in self._config.fetch.kinds and _shows_no_files(platform, given):
            config = replace(config, log_end_bytes=MAX_LOG_END_BYTES)
            given = dataclasses.replace(given, config=config)
        drivers = WorkerDrivers(
            place.worker,
            self._folder.path,
            config,
            router,
            self._config.leases,
            known=known,
            leads=self._leads,
            trouble_with_share=partial(share.judge, place.worker),
            shared=self._shared,
            keep_logs=self._keep_logs,
            load=partial(self._load, place.worker),
            clock=self._clock,
        )
        return platform.driver(given, drivers)

    def _agent_config(self, place: Place, share: Share) -> AgentConfig:
        config = worker_config(
            self._config,
            place,
            self._folder,
            self._endpoints.workers[place.worker],
            self._epoch,
            self._sockets,
        )
        ways = self._endpoints.further.get(place.worker, ())
        return replace(config, domain=share.name if share.unseen else "", ways=ways)


def _shows_no_files(platform: Platform[Any], given: Given[Any]) -> bool:
    """Whether nobody but the agent there sees what its trials leave."""
    if not platform.has_agent:
        return False
    files = platform.worker_files(given)
    try:
        return files.of(0, 1) is None
    except DispatcherError:
        return False  # who asks for them gets to know
    finally:
        files.close()


def _token_of(root: str) -> str:
    try:
        os.makedirs(root, exist_ok=True)
        return lay_token(root)
    except OSError as error:
        raise PermanentBackendError(
            f"the weights root cannot be written to: {error.strerror}", where=root
        ) from error
