"""Where a head listens: at no port that nobody needs, and to nobody without a key."""

from __future__ import annotations

import contextlib
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from msgspec.structs import replace

from dispatcher.channel import CurveKeys, PeerMessage, Router
from dispatcher.channel.router import MAX_AGENT_FRAME_BYTES
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.endpoints import TUNNEL_NAME, HeadEndpoints, open_endpoints
from dispatcher.ssh.forwarding import ReverseForwards
from tests.support.peers import try_to_say
from tests.unit.wiring.test_places import config, ssh
from trial_runtime.endpoint import FOLDER, Endpoint, connect

PATIENCE_S = 120.0


class Head:
    """A ROUTER and the endpoints that an experiment file asks for."""

    def __init__(self, sockets: Path, folder: Path) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.router = Router(self.context)
        self.sockets = sockets
        (folder / "keys").mkdir(mode=0o700, exist_ok=True)
        self.folder: Any = ExperimentFolder(folder)
        self.address = self.router.bind_ipc(sockets / "head")

    def open(self, service: Any, **keys: Any) -> HeadEndpoints:
        return open_endpoints(config(service, **keys), self.folder, self.router, self.address)

    def hear(self) -> list[PeerMessage]:
        for _ in range(int(PATIENCE_S * 10)):
            if said := self.router.poll(0.1):
                return said
        raise AssertionError(self.router.refusals())

    def until_refused(self, reason: str) -> None:
        for _ in range(int(PATIENCE_S * 10)):
            assert self.router.poll(0.1) == []
            if self.router.refusals().get(reason):
                return
        raise AssertionError(self.router.refusals())

    def close(self) -> None:
        self.router.close()
        self.context.destroy(linger=0)


@pytest.fixture
def head(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    made = Head(tmp_path_factory.mktemp("s"), tmp_path)
    yield made
    made.close()


class Channel:
    """One connection to a port of a machine, as SSH carries it; the other end is ``far``."""

    def __init__(self) -> None:
        self.far, self._near = socket.socketpair()

    @property
    def closed(self) -> bool:
        return self._near.fileno() < 0

    def recv(self, most: int) -> bytes:
        return self._near.recv(most)

    def sendall(self, data: bytes) -> None:
        self._near.sendall(data)

    def shutdown_write(self) -> None:
        self._near.shutdown(socket.SHUT_WR)

    def get_transport(self) -> Any:
        class Transport:
            def is_active(self) -> bool:
                return True

        return Transport()

    def close(self) -> None:
        self._near.close()


class Tunnel:
    """A port here that stands for the one on a machine's loopback, carried by our own code."""

    def __init__(self, near: Path) -> None:
        self.forwards = ReverseForwards(self)  # type: ignore[arg-type]
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.accept: Any = None
        self.forwards.add(str(near))
        self.taken: list[socket.socket] = []
        self.threads = [threading.Thread(target=self.serve)]
        self.threads[0].start()

    @contextlib.contextmanager
    def asking(self) -> Iterator[Tunnel]:
        """The connection, for the forwards: it is this."""
        yield self

    def request_port_forward(self, _address: str, _port: int, handler: Any) -> int:
        """See paramiko: our port is there already."""
        self.accept = handler
        return self.port

    def serve(self) -> None:
        while True:
            try:
                one, _ = self.server.accept()
            except OSError:
                return
            channel = Channel()
            self.taken += [one, channel.far]
            self.accept(channel, None, ("127.0.0.1", self.port))
            for pair in ((one, channel.far), (channel.far, one)):
                self.threads.append(threading.Thread(target=carry, args=pair))
                self.threads[-1].start()

    def __enter__(self) -> Tunnel:
        return self

    def __exit__(self, *_: object) -> None:
        for each in [self.server, *self.taken]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        ours = [each for each in threading.enumerate() if each.name.startswith("ssh port")]
        for thread in [*self.threads, *ours]:
            thread.join(PATIENCE_S)
        for each in [self.server, *self.taken]:
            each.close()


def carry(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


def test_machines_with_tunnels_need_no_port(head: Head) -> None:
    """Mutation: the head listens on the loopback, where any user of this machine can connect."""
    endpoints = head.open(ssh({"host": "a"}, {"host": "b"}))
    assert endpoints.tcp is None
    assert endpoints.tunnel == head.sockets / TUNNEL_NAME
    assert not (head.folder.keys / "port").exists()
    assert stat.S_IMODE(endpoints.tunnel.stat().st_mode) == 0o600
    assert endpoints.tuner == Endpoint(head.address)
    assert endpoints.workers["a"].address == f"ipc://{endpoints.tunnel}"
    assert endpoints.workers["a"].secret_key != endpoints.workers["b"].secret_key != ""


def test_who_comes_without_a_tunnel_of_ours_needs_one(head: Head) -> None:
    services = [ssh({"host": "a"}), ssh({"host": "b", "headAddress": "127.0.0.1"})]
    endpoints = head.open(services, channel={"transport": "tcp"})
    assert endpoints.tcp is not None
    assert endpoints.tunnel is not None
    assert (
        endpoints.workers["b"].address
        == endpoints.tuner.address
        == f"tcp://127.0.0.1:{endpoints.tcp[1]}"
    )
    assert endpoints.workers["a"].address == f"ipc://{endpoints.tunnel}"
    assert (head.folder.keys / "port").read_text() == str(endpoints.tcp[1])


@pytest.mark.parametrize(
    "named, address",
    [
        (None, "127.0.0.1:{port}"),
        ("login1:9000", "login1:9000"),
        ("localhost", "localhost:{port}"),
        ("[::1]", "[::1]:{port}"),
    ],
)
def test_agents_of_clusters_dial_the_address_of_the_file(
    head: Head, named: str | None, address: str
) -> None:
    """Mutation: nodes dial where the head listens, which is no address of theirs."""
    service: dict[str, Any] = {"platform": "ray", "address": "127.0.0.1:6379", "channel": "direct"}
    service["headAddress"] = named
    endpoints = head.open(service, channel={"transport": "tcp"})
    assert endpoints.tcp is not None
    (there,) = endpoints.workers.values()
    assert there.address == f"tcp://{address.format(port=endpoints.tcp[1])}"
    assert (there.way, endpoints.further) == ("direct", {"ray": ()})


def test_an_agent_of_a_cluster_gets_all_ways_that_there_may_be(head: Head, tmp_path: Path) -> None:
    """Each by its own words for people, with the same keys where it comes by TCP. Mutations: the
    jump host dials the address that is meant for nodes; the port is open to nobody."""
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGd8wLSF9W2mNcpkXHcYJeUzU3n1d6p0pIDoOQkJ1wJT"
    (tmp_path / "known").write_text(f"login1 {key}\n")
    jump = {"host": "login1", "user": "me", "knownHosts": str(tmp_path / "known")}
    service = {"platform": "slurm", "headAddress": "h:1", "jump": jump, "channel": "auto"}
    endpoints = head.open([service, {"platform": "local"}], channel={"transport": "tcp"})
    assert endpoints.tcp is not None
    direct = endpoints.workers["slurm"]
    tunnel, folder = endpoints.further["slurm"]
    assert [each.way for each in (direct, tunnel, folder)] == ["direct", "tunnel", "folder"]
    assert direct.address == "tcp://h:1"
    assert tunnel.address == f"tcp://127.0.0.1:{endpoints.tcp[1]}"
    assert tunnel.jump is not None
    assert (tunnel.jump.host, tunnel.jump.host_keys) == ("login1", (key,))
    assert tunnel.secret_key == direct.secret_key != ""
    assert folder.address == f"{FOLDER}{head.folder.path}/agents/slurm/line"
    assert endpoints.further["local"] == ()


def test_without_a_port_that_nodes_reach_none_is_opened(head: Head) -> None:
    """Mutation: the folder is the second choice, behind one that leads nowhere."""
    endpoints = head.open({"platform": "slurm"})
    assert (endpoints.tcp, endpoints.tunnel) == (None, None)
    assert [each.way for each in endpoints.workers.values()] == ["folder"]


def test_this_machine_alone_needs_neither(head: Head) -> None:
    endpoints = head.open({"platform": "local"})
    assert (endpoints.tcp, endpoints.tunnel) == (None, None)
    assert endpoints.workers["local"] == Endpoint(head.address)


def test_an_agent_is_heard_through_a_tunnel_and_strangers_are_not(head: Head) -> None:
    endpoints = head.open(ssh({"host": "a"}))
    assert endpoints.tunnel is not None
    with Tunnel(endpoints.tunnel) as tunnel:
        speak_through(tunnel, head, endpoints)


def speak_through(tunnel: Tunnel, head: Head, endpoints: HeadEndpoints) -> None:
    link = head.router.admit("a", "agent:a:secret")
    own, foreign = endpoints.workers["a"], CurveKeys.fresh()
    keys = {"server_key": own.server_key}
    known = Endpoint(
        tunnel.address,
        "agent:a:secret",
        public_key=own.public_key,
        secret_key=own.secret_key,
        **keys,
    )
    other = {"public_key": foreign.public, "secret_key": foreign.secret, **keys}
    stranger = Endpoint(tunnel.address, "agent:a:secret", **other)
    plain = Endpoint(tunnel.address, "agent:a:secret")
    with (
        connect(head.context, stranger) as bad,
        connect(head.context, plain) as worse,
        connect(head.context, known) as good,
    ):
        try_to_say(bad, b"let me in")
        try_to_say(worse, b"let me in")
        head.until_refused("foreign key")
        good.send(b"hello")
        assert head.hear() == [PeerMessage("a", b"agent:a:secret", b"hello")]
        link.send(b"welcome")
        assert good.poll(int(PATIENCE_S * 1000))
        assert good.recv() == b"welcome"


def test_whoever_may_come_is_heard_whichever_way_it_comes(head: Head) -> None:
    """Each way is opened after the one before, by keys of its own. Mutation: the keys of the last
    one are the only ones; who comes by another way is refused, given up and started again."""
    there = [ssh({"host": "a"}, {"host": "c"}), ssh({"host": "b", "headAddress": "127.0.0.1"})]
    endpoints = head.open([*there, {"platform": "local"}], channel={"transport": "tcp"})
    peers = {**endpoints.workers, "tuner": endpoints.tuner}
    assert {peer.address.partition(":")[0] for peer in peers.values()} == {"ipc", "tcp"}
    assert {*peers} == {"a", "b", "c", "local", "tuner"}
    for name, peer in peers.items():
        link = head.router.admit(name, f"{name}:secret")
        with connect(head.context, replace(peer, routing_id=f"{name}:secret")) as one:
            try_to_say(one, b"hello")
            said: list[PeerMessage] = []
            while not said:
                said = head.router.poll(1.0)
                assert head.router.refusals() == {}, name
            assert said == [PeerMessage(name, f"{name}:secret".encode(), b"hello")]
            link.send(b"welcome")
            assert one.poll(int(PATIENCE_S * 1000))
            assert one.recv() == b"welcome"
    foreign = CurveKeys.fresh()
    for name in ("a", "b"):  # nobody else, by neither way
        before = head.router.refusals().get("foreign key", 0)
        stranger = replace(
            peers[name],
            routing_id=f"{name}:secret",
            public_key=foreign.public,
            secret_key=foreign.secret,
        )
        with connect(head.context, stranger) as one:
            try_to_say(one, b"let me in")
            while head.router.refusals().get("foreign key", 0) <= before:
                assert head.router.poll(0.05) == []


def test_who_shows_no_key_is_disconnected(head: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs the head a descriptor. Mutation: they may stay for half a minute, or for ever."""
    monkeypatch.setattr("dispatcher.channel.router.HANDSHAKE_MS", 100)
    service = ssh({"host": "b", "headAddress": "127.0.0.1"})
    endpoints = head.open([service], channel={"transport": "tcp"})
    assert endpoints.tcp is not None
    with socket.create_connection(endpoints.tcp) as silent:
        silent.settimeout(PATIENCE_S)
        while silent.recv(1 << 10):  # its greeting
            pass


@pytest.mark.parametrize("way", ["tunnel", "port"])
def test_an_agent_elsewhere_says_little_at_once(head: Head, way: str) -> None:
    """Mutation: what a machine sends is kept in eight mebibytes a piece, as the tuner's."""
    if way == "tunnel":
        there = head.open(ssh({"host": "a"})).workers["a"]
    else:
        keys, own = CurveKeys.fresh(), CurveKeys.fresh()
        where = head.router.bind_tcp("127.0.0.1", 0, keys, [own.public], agents_only=True)
        there = Endpoint(where, "", keys.public, own.public, own.secret)
    head.router.admit("a", "agent:a:secret")
    with connect(head.context, replace(there, routing_id="agent:a:secret")) as agent:
        agent.send(bytes(MAX_AGENT_FRAME_BYTES - 1024))
        assert len(head.hear()[0].payload) == MAX_AGENT_FRAME_BYTES - 1024
        agent.send(bytes(MAX_AGENT_FRAME_BYTES + 1))
        agent.send(b"behind it")
        assert [said.payload for said in head.hear()] == [b"behind it"]
