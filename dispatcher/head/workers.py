"""The agents of an experiment, on this machine and on others: started, asked and ended together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dispatcher.channel import CurveKeys, Router
from dispatcher.core import State
from dispatcher.core.ids import WorkerId
from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.planned import LOCAL
from dispatcher.experiment.weights_place import RootUrl
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.drivers import SharedParts, WorkerDrivers
from dispatcher.platforms.agents.self_report import Statistics
from dispatcher.platforms.allocations.process import Load, always_enough
from dispatcher.platforms.driver import Driver
from dispatcher.platforms.given import Given
from dispatcher.platforms.platform import Reach
from dispatcher.platforms.registry import platform_of
from dispatcher.wiring.agents import demand_references, worker_config
from dispatcher.wiring.archives import packer
from dispatcher.wiring.places import Place, places
from dispatcher.wiring.storage_domains import Share, Shares
from dispatcher.wiring.weights import weights_root
from trial_runtime import durable_file
from trial_runtime.agent.config import AgentConfig
from trial_runtime.endpoint import Endpoint
from trial_runtime.resource_wire import Samples
from trial_runtime.weights.storage.share import lay_token

#: The socket file of tunnels, in the folder of that of this machine's own peers.
TUNNEL_NAME = "far"


@dataclass(frozen=True, slots=True)
class HeadEndpoints:
    """The endpoints at which each peer finds the head, without routing ids.

    ``tcp`` is the address and port at which the head listens, ``tunnel`` the socket file that
    tunnels lead to: None where no peer comes that way.
    """

    tuner: Endpoint
    workers: Mapping[str, Endpoint]
    tcp: tuple[str, int] | None
    tunnel: Path | None


def open_endpoints(
    config: ExperimentConfig, folder: ExperimentFolder, router: Router, ipc: str
) -> HeadEndpoints:
    """Listen for the tuner host and all agents.

    Peers of this machine use the socket file at ``ipc`` if the file says so. Those of others come
    through tunnels of ours to a socket file beside it, which guards itself by CURVE. Only a peer
    without a tunnel of ours needs a port, to which anybody on this machine can connect.

    Args:
        config: names the peers, and how each reaches the head.
        folder: the experiment's; its keys are made or read there.
        router: on which to listen.
        ipc: the address of the socket file on which the router listens already.

    Raises:
        PermanentBackendError: the port is in use.
    """
    channel = config.channel
    reach = {place.worker: _reach(place) for place in places(config)}
    peers = ("tuner", *reach)
    tunnelled = [p for p in peers if reach.get(p) == "tunnel"]
    over_tcp = [p for p in peers if channel.transport == "tcp" or reach.get(p) == "tcp"]
    over_tcp = [p for p in over_tcp if p not in tunnelled]
    endpoints = dict.fromkeys(peers, Endpoint(ipc))
    if not (over_tcp or tunnelled):
        return HeadEndpoints(endpoints["tuner"], endpoints, None, None)
    keys = {p: CurveKeys.kept(folder.keys / _key_file(p)) for p in (*tunnelled, *over_tcp)}
    server = CurveKeys.kept(folder.keys / "head")

    def endpoint(name: str, address: str) -> Endpoint:
        own = keys[name]
        return Endpoint(
            address, server_key=server.public, public_key=own.public, secret_key=own.secret
        )

    tcp, tunnel = None, None
    if tunnelled:
        tunnel = Path(ipc.removeprefix("ipc://")).with_name(TUNNEL_NAME)
        address = router.bind_ipc(tunnel, server, [keys[p].public for p in tunnelled])
        endpoints |= {p: endpoint(p, address) for p in tunnelled}
    if over_tcp:
        port_file = folder.keys / "port"  # agents of the head before look for us there
        port = channel.port or (int(port_file.read_text()) if port_file.exists() else 0)
        # A head that hangs, and was taken over, keeps the port: agents read the new one.
        host = channel.host if channel.transport == "tcp" else "127.0.0.1"
        allowed = [keys[p].public for p in over_tcp]
        address = router.bind_tcp(
            host,
            port,
            server,
            allowed,
            or_any=not channel.port,
            agents_only="tuner" not in over_tcp,
        )
        tcp = (host, int(address.rpartition(":")[2]))
        durable_file.replace(port_file, str(tcp[1]).encode(), durable=False)
        endpoints |= {p: endpoint(p, address) for p in over_tcp}
    return HeadEndpoints(endpoints["tuner"], endpoints, tcp, tunnel)


def _reach(place: Place) -> Reach:
    return platform_of(place.service).reach_of(place.part)


def _key_file(name: str) -> str:
    """Name a peer's key file; that of this machine's agent, once the only one, is ``agent``."""
    return {"tuner": "tuner", LOCAL: "agent"}.get(name, f"agent-{name}")


class Workers:
    """Drivers of all agents, by the names of their workers.

    Args:
        config: names the workers.
        folder: the experiment's.
        router: on which agents reach the head.
        endpoints: as :func:`open_endpoints` returned them.
        epoch: this head's.
        sockets: the folder of this machine's socket files.
        known: workers that the journal knows: agents of theirs may run, with trials.
        leads: whether this head still leads.
        load: how much there is to do for a worker; called in the engine's thread.
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
        load: Callable[[str], Load] = lambda worker: always_enough(),
    ) -> None:
        self._load = load
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

    def _driver(self, router: Router, place: Place, known: bool) -> Driver:
        platform, reach = platform_of(place.service), _reach(place)
        share = self._shares.of(place)
        config = self._agent_config(place, share)
        given: Given[Any] = Given(
            place.worker,
            place.service,
            place.part,
            config,
            self._folder.path,
            self._endpoints.tcp if reach == "tcp" else None,
            self._archives,
            share.token,
            known=known,
            tunnel=self._endpoints.tunnel if reach == "tunnel" else None,
            leads=self._leads,
        )
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
            load=partial(self._load, place.worker),
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
        return replace(config, domain=share.name if share.unseen else "")


def load_of(state: State, worker: str) -> Load:
    """How much there is to do for a worker, as the core has it. Thread: the engine's."""
    there = state.workers.get(WorkerId(worker))
    return Load(len(state.queued), there is not None and bool(there.running))


def _token_of(root: str) -> str:
    try:
        os.makedirs(root, exist_ok=True)
        return lay_token(root)
    except OSError as error:
        raise PermanentBackendError(
            f"the weights root cannot be written to: {error.strerror}", where=root
        ) from error
