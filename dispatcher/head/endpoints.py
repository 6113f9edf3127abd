"""The endpoints of a head, and what each peer is told of them: none that nobody needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from dispatcher.channel import CurveKeys, Router
from dispatcher.experiment.addresses import dialed
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.platform_base import Reach
from dispatcher.experiment.service import LOCAL
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.platforms.allocations.section import AllocationService
from dispatcher.platforms.registry import platform_of
from dispatcher.wiring.places import Place, places
from trial_runtime import durable_file
from trial_runtime.endpoint import FOLDER, Endpoint

#: The socket file of tunnels, in the folder of that of this machine's own peers.
TUNNEL_NAME = "far"

#: The words of ways that agents try by themselves, as the key ``channel`` has them.
WAYS: Mapping[Reach, str] = {"tcp": "direct", "jump": "tunnel", "folder": "folder"}


@dataclass(frozen=True, slots=True)
class HeadEndpoints:
    """The endpoints at which each peer finds the head, without routing ids.

    ``further``: of workers whose agents try several ways, those behind the first. ``tcp`` is the
    address and port at which the head listens, ``tunnel`` the socket file that tunnels lead to:
    None where no peer comes that way.
    """

    tuner: Endpoint
    workers: Mapping[str, Endpoint]
    tcp: tuple[str, int] | None
    tunnel: Path | None
    further: Mapping[str, tuple[Endpoint, ...]] = field(default_factory=dict)


def open_endpoints(
    config: ExperimentConfig,
    folder: ExperimentFolder,
    router: Router,
    ipc: str,
    only: Sequence[Place] | None = None,
) -> HeadEndpoints:
    """Listen for the tuner host and all agents.

    Peers of this machine use the socket file at ``ipc`` if the file says so. Those of others come
    through tunnels of ours to a socket file beside it, which guards itself by CURVE, or by a folder
    of theirs. Only a peer without either needs a port, to which anybody on this machine can
    connect.

    Args:
        config: names the peers, and how each reaches the head.
        folder: the experiment's; its keys are made or read there.
        router: on which to listen.
        ipc: the address of the socket file on which the router listens already.
        only: the workers that come; all of the file, if not given.

    Raises:
        BackendError: the port is in use, or a jump host is not known.
    """
    there = {place.worker: place for place in (places(config) if only is None else only)}
    own: Reach = "tcp" if config.channel.transport == "tcp" else "socket"
    ways: dict[str, tuple[Reach, ...]] = {"tuner": (own,)}
    for name, place in there.items():
        ways[name] = tuple(own if way == "socket" else way for way in ways_of(config, place))
    over_tcp = [name for name, tried in ways.items() if {"tcp", "jump"} & {*tried}]
    tunnelled = [name for name, tried in ways.items() if "tunnel" in tried]
    keys = {p: CurveKeys.kept(folder.keys / _key_file(p)) for p in (*tunnelled, *over_tcp)}
    server = CurveKeys.kept(folder.keys / "head") if keys else CurveKeys("", "")
    tcp, tunnel = None, None
    if tunnelled:
        tunnel = Path(ipc.removeprefix("ipc://")).with_name(TUNNEL_NAME)
        router.bind_ipc(tunnel, server, [keys[p].public for p in tunnelled])
    if over_tcp:
        allowed = [keys[p].public for p in over_tcp]
        tcp = _listen(config, folder, router, server, allowed, agents_only="tuner" not in over_tcp)

    def endpoint(name: str, reach: Reach) -> Endpoint:
        if reach == "socket":
            return Endpoint(ipc)
        if reach == "folder":
            return Endpoint(f"{FOLDER}{line_of(there[name], folder.path)}", way=WAYS[reach])
        made = Endpoint(
            f"ipc://{tunnel}",
            server_key=server.public,
            public_key=keys[name].public,
            secret_key=keys[name].secret,
            way=WAYS.get(reach, "") if name in there else "",
        )
        return (
            made if tcp is None or reach == "tunnel" else _dialed(made, reach, tcp, there.get(name))
        )

    made = {name: tuple(endpoint(name, way) for way in tried) for name, tried in ways.items()}
    tuner = made.pop("tuner")[0]
    first = {name: tried[0] for name, tried in made.items()}
    further = {name: tried[1:] for name, tried in made.items()}
    return HeadEndpoints(tuner, first, tcp, tunnel, further)


def _listen(
    config: ExperimentConfig,
    folder: ExperimentFolder,
    router: Router,
    server: CurveKeys,
    allowed: list[str],
    *,
    agents_only: bool,
) -> tuple[str, int]:
    """Listen for those who come by TCP; returns address and port."""
    channel = config.channel
    port_file = folder.keys / "port"  # agents of the head before look for us there
    port = channel.port or (int(port_file.read_text()) if port_file.exists() else 0)
    # A head that hangs, and was taken over, keeps the port: agents read the new one.
    address = router.bind_tcp(
        channel.listens_on,
        port,
        server,
        allowed,
        or_any=not channel.port,
        agents_only=agents_only,
    )
    tcp = (channel.listens_on, int(address.rpartition(":")[2]))
    durable_file.replace(port_file, str(tcp[1]).encode(), durable=False)
    return tcp


def _dialed(made: Endpoint, reach: Reach, tcp: tuple[str, int], place: Place | None) -> Endpoint:
    """An endpoint with the address that its peer, or a jump host for it, dials."""
    if place is None:
        return replace(made, address=f"tcp://{dialed(None, tcp)}")
    if reach == "jump":
        address, jump = platform_of(place.service).jump(place.part, tcp)
        return replace(made, address=f"tcp://{address}", jump=jump)
    return replace(made, address=f"tcp://{dialed(place.address, tcp)}")


def line_of(place: Place, folder: Path) -> Path:
    """The folder of a worker's line to the head.

    Args:
        place: the worker's.
        folder: the experiment's.
    """
    assert isinstance(place.service, AllocationService)
    return place.service.homes(folder.name, folder) / place.worker / "line"


def ways_of(config: ExperimentConfig, place: Place) -> tuple[Reach, ...]:
    """The ways that the agent of a place tries in turn.

    Args:
        config: says where the head listens.
        place: the worker's.
    """
    return platform_of(place.service).ways_of(place.part, config.channel.listens_on)


def _key_file(name: str) -> str:
    """Name a peer's key file; that of this machine's agent, once the only one, is ``agent``."""
    return {"tuner": "tuner", LOCAL: "agent"}.get(name, f"agent-{name}")
