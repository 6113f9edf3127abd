"""An agent that reaches its head through a machine that it logs in to: a real sshd and ROUTER."""

from __future__ import annotations

import getpass
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from msgspec.structs import replace

from dispatcher.channel import CurveKeys, PeerMessage, Router
from dispatcher.findings import Severity
from dispatcher.platforms.clusters.inspection import inspect_jump
from dispatcher.platforms.clusters.jump import JumpHostConfig
from tests.support import sshd
from tests.support.ports import free_port
from tests.support.processes import wait_until
from trial_runtime.endpoint import Endpoint, JumpHost
from trial_runtime.folder_line.socket import connect_to_head, stands
from trial_runtime.tunnel import tunnel as module
from trial_runtime.tunnel.tunnel import NoWay, TunnelSocket, dial, log_in

SECRET = "agent:w:0123456789abcdef"
PATIENCE_S = 120.0


def jump_of(server: sshd.Sshd, **changes: object) -> JumpHost:
    words = (server.folder / "host_key.pub").read_text().split()[:2]
    made = JumpHost(
        "127.0.0.1",
        server.port,
        getpass.getuser(),
        (" ".join(words),),
        (str(server.folder / "none"), str(server.folder / "client_key")),
    )
    return replace(made, **changes)


class Head:
    """A ROUTER on the loopback, which only the jump host reaches."""

    def __init__(self) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.router = Router(self.context)
        self.server, self.agent = CurveKeys.fresh(), CurveKeys.fresh()
        self.address = self.router.bind_tcp("127.0.0.1", 0, self.server, [self.agent.public])
        self.link = self.router.admit("w", SECRET)

    def endpoint(self, jump: JumpHost) -> Endpoint:
        keys = (self.server.public, self.agent.public, self.agent.secret)
        return Endpoint(self.address, SECRET, *keys, way="tunnel", jump=jump)

    def exchange(self, agent: zmq.Socket[bytes], payload: bytes) -> None:
        """Have the agent speak, as soon as it can, and answer it."""

        def sent() -> bool:
            try:
                agent.send(payload, zmq.NOBLOCK)
            except zmq.Again:
                return False
            return True

        wait_until(sent, "there is a connection")
        heard: list[PeerMessage] = []
        for _ in range(int(PATIENCE_S * 10)):
            heard += self.router.poll(0.1)
            if heard:
                break
        assert [each.payload for each in heard] == [payload]
        assert self.link.send(b"to " + payload)
        assert agent.poll(int(PATIENCE_S * 1000))
        assert agent.recv() == b"to " + payload

    def close(self) -> None:
        self.router.close()
        self.context.destroy(linger=0)


@pytest.fixture
def head() -> Iterator[Head]:
    made = Head()
    yield made
    made.close()


def test_an_agent_speaks_through_a_jump_host_and_again_when_it_is_back(
    own: sshd.Sshd, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: a jump host that was away is never logged in to again; other users of the node may
    use the tunnel; threads and files of it stay; the last frames before the end are lost."""
    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 1.0)
    agent = connect_to_head(head.context, head.endpoint(jump_of(own)))
    assert isinstance(agent, TunnelSocket)
    assert agent.tunnel is not None
    file = Path(agent.tunnel.address.removeprefix("ipc://"))
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    head.exchange(agent, b"hello")
    assert stands(agent)
    own.kill()
    wait_until(lambda: not stands(agent), "the connection has ended")
    own.start()
    head.exchange(agent, b"again")
    agent.send(bytes(1 << 20))
    agent.close(linger=int(PATIENCE_S * 1000))
    assert [len(each.payload) for each in head.router.poll(PATIENCE_S)] == [1 << 20]
    assert not file.parent.exists()
    names = {thread.name for thread in threading.enumerate()}
    assert "tunnel to the head" not in names
    assert "Starting session" not in own.log(), "nothing ran there"


def test_a_jump_host_with_another_key_is_sent_nothing(server: sshd.Sshd, tmp_path: Path) -> None:
    """Mutation: whoever listens there gets our user name, and what we send."""
    before = len(server.log())
    other = sshd.make_key(tmp_path / "other").with_suffix(".pub").read_text().split()[:2]
    with pytest.raises(NoWay, match=r"another host key"):
        log_in(jump_of(server, host_keys=(" ".join(other),)))
    assert getpass.getuser() not in server.log()[before:].replace(str(tmp_path), "")


def test_why_a_jump_host_leads_nowhere_is_said(server: sshd.Sshd, tmp_path: Path) -> None:
    with pytest.raises(NoWay, match=r"none of the keys for .* is here: /nowhere/key"):
        log_in(jump_of(server, key_files=("/nowhere/key",)))
    stranger, locked = tmp_path / "stranger", tmp_path / "locked"
    sshd.make_key(stranger)
    sshd.make_key(locked, "a passphrase")
    with pytest.raises(NoWay, match=r"does not let us in; tried: .*locked, which cannot be used"):
        log_in(jump_of(server, key_files=(str(locked), str(stranger))))
    with pytest.raises(NoWay, match=r"no login to .*refused"):
        log_in(jump_of(server, port=free_port()))


def test_what_a_jump_host_cannot_reach_or_may_not(server: sshd.Sshd, tmp_path: Path) -> None:
    jump = jump_of(server)
    transport = log_in(jump)
    try:
        with pytest.raises(NoWay, match=r"cannot reach tcp://127\.0\.0\.1:"):
            dial(transport, jump, f"tcp://127.0.0.1:{free_port()}")
    finally:
        transport.close()
    with sshd.running(tmp_path / "closed", "AllowTcpForwarding no\n") as closed:
        shutil.copy(server.folder / "client_key", closed.folder / "client_key")
        shutil.copy(server.folder / "authorized_keys", closed.folder / "authorized_keys")
        jump = jump_of(closed)
        transport = log_in(jump)
        try:
            with pytest.raises(NoWay, match=r"forwards nothing for us: AllowTcpForwarding"):
                dial(transport, jump, "tcp://127.0.0.1:9")
        finally:
            transport.close()


def test_a_jump_host_is_looked_over_from_here(server: sshd.Sshd, tmp_path: Path) -> None:
    """By the agent's own login. Mutations: a key that lies on nodes only is a problem; a jump host
    that anybody may be is well."""

    def look(of: sshd.Sshd, key: Path, known: Path) -> tuple[Severity, str]:
        keys = {"host": "127.0.0.1", "port": of.port, "user": getpass.getuser()}
        files = {"keyFile": str(key), "knownHosts": str(known)}
        found = inspect_jump(JumpHostConfig.model_validate(keys | files))
        return found.severity, found.text

    key, known = server.folder / "client_key", server.folder / "known_hosts"
    severity, text = look(server, key, known)
    assert (severity, "forwards for us" in text) == (Severity.OK, True), text
    severity, text = look(server, Path("/nodes/key"), known)
    assert (severity, "nobody has logged in" in text) == (Severity.NOTE, True), text
    other = sshd.make_key(tmp_path / "other").with_suffix(".pub").read_text()
    (tmp_path / "known").write_text(f"[127.0.0.1]:{server.port} {other}")
    severity, text = look(server, key, tmp_path / "known")
    assert (severity, "another host key" in text) == (Severity.PROBLEM, True), text
    (tmp_path / "known").write_text("")
    severity, text = look(server, key, tmp_path / "known")
    assert (severity, "not known here" in text) == (Severity.PROBLEM, True), text
