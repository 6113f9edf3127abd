"""The head's ROUTER: one thread polls it, known peers send to it.

Peers are identified by their routing id, which holds a secret (see
:mod:`trial_runtime.endpoint`). Frames of unknown ids are counted and dropped. On TCP the
socket is a CURVE server with an allow-list of client keys, so that strangers do not get as
far as sending one.
"""

from __future__ import annotations

import hmac
import os
import socket
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import zmq

from dispatcher.channel.admission import Admission
from dispatcher.channel.keys import CurveKeys
from dispatcher.errors import PermanentBackendError
from trial_runtime.endpoint import MAX_MESSAGE_BYTES
from trial_runtime.refusals import Refusals

#: Messages that wait in ZeroMQ for one peer before :meth:`Router.send` returns false. Beyond
#: it the link keeps them itself, up to ``MAX_BACKLOG``.
HIGH_WATER_MARK = 10_000
MAX_BACKLOG = 100_000

#: Messages taken from the socket at one go, so that one talkative peer cannot keep the
#: engine from its timers.
MAX_PER_POLL = 512


#: A client that has not shown a key of ours after this time (milliseconds) is disconnected: each
#: connection costs a descriptor, and libzmq would wait thirty seconds. An honest peer tries again.
HANDSHAKE_MS = 3_000

#: The largest frame of an agent on another machine (bytes), and frames of one that libzmq keeps
#: while the engine is busy. Agents send no more than 3 MiB at once. libzmq knows no bound on the
#: parts of a message, and hands it out when the last has come.
MAX_AGENT_FRAME_BYTES = 4 << 20
AGENT_FRAMES_KEPT = 128


# Plain integers: pyzmq's flags are enums, and joining those costs microseconds each time.
POLLIN = int(zmq.POLLIN)
SEND_FIRST = int(zmq.SNDMORE) | int(zmq.NOBLOCK)
SEND_LAST = int(zmq.NOBLOCK)


class PeerMessage(NamedTuple):
    """One message; ``owner`` is the name under which its peer was admitted, empty for guests."""

    owner: str
    peer: bytes
    payload: bytes


class RouterLink:
    """The connection to one peer over the ROUTER. Thread: the engine's.

    Args:
        router: on which the peer is connected.
        owner: the name under which the peer's messages are handed out.
        routing_id: the peer's id on the socket, which holds a secret.
    """

    def __init__(self, router: Router, owner: str, routing_id: bytes) -> None:
        self._router = router
        self.owner = owner
        self.routing_id = routing_id
        self._backlog: deque[bytes] = deque()

    def send(self, payload: bytes) -> bool:
        """Send in order; a message that the peer cannot take yet is kept. False, and not kept, if
        the backlog is full."""
        if not self._backlog and self._router.send(self.routing_id, payload):
            return True
        if len(self._backlog) >= MAX_BACKLOG:
            return False
        self._backlog.append(payload)
        return True

    def flush(self) -> None:
        """Try the backlog again: the peer has sent something, so it is there."""
        while self._backlog and self._router.send(self.routing_id, self._backlog[0]):
            self._backlog.popleft()

    def renew(self, routing_id: str) -> None:
        """Switch to a successor of the peer: messages of the old one are dropped."""
        self._backlog.clear()
        self._router.rename(self, routing_id.encode())


#: Sockets of a context beside those of peers that come by folders.
_OTHER_SOCKETS = 64


def context_for(by_folder: int) -> zmq.Context[zmq.Socket[bytes]]:
    """Make a context with sockets for all of a head's peers.

    Args:
        by_folder: peers that come by folders, each of which has a socket on this side as well.
    """
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    # A context knows how many only until its first socket.
    context.set(zmq.MAX_SOCKETS, max(context.get(zmq.MAX_SOCKETS), by_folder + _OTHER_SOCKETS))
    return context


class Router:
    """Bind, poll, send. All methods but :meth:`wake` belong to one thread."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self.context = context
        self._sockets: list[zmq.Socket[bytes]] = []
        self._home: dict[bytes, zmq.Socket[bytes]] = {}
        self._links: dict[bytes, RouterLink] = {}
        self._guest_prefix = b""
        self._poller = zmq.Poller()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._poller.register(self._wake_in, zmq.POLLIN)
        self._refusals = Refusals()
        self._admission: Admission | None = None
        self._inside = ""

    @property
    def refused(self) -> int:
        """Messages of strangers and malformed ones that were dropped."""
        return self._refusals.total

    def refusals(self) -> dict[str, int]:
        """Count what was dropped, by reason: ``stranger`` (an unknown id), ``frames`` (not one
        frame), ``foreign key`` (connections with a key that is not allowed)."""
        denied = self._admission.denied if self._admission is not None else 0
        return self._refusals.counts | ({"foreign key": denied} if denied else {})

    def bind_ipc(
        self, path: Path, keys: CurveKeys | None = None, allowed: Sequence[str] = ()
    ) -> str:
        """Listen on a socket file; its folder (mode 0700) is what keeps strangers out.

        Args:
            path: the socket file; one that is there is replaced.
            keys: the server's, for peers that come through a tunnel; None: no CURVE.
            allowed: public keys of clients, if there are keys.

        Raises:
            PermanentBackendError: the path is too long for a socket, or cannot be made.
        """
        address = f"ipc://{path}"
        limit = zmq.IPC_PATH_MAX_LEN
        if len(os.fsencode(path)) > limit:
            raise PermanentBackendError(
                f"socket path {path} is longer than the {limit} bytes the system takes",
                hint="set TMPDIR or XDG_RUNTIME_DIR to a shorter folder",
            )
        path.unlink(missing_ok=True)  # of a head that died; the leader's lock is ours by now
        router = self._new_socket()
        if keys is not None:
            self._guard(router, keys, allowed)
            _bound_for_agents(router)
        self._bind(router, address)
        path.chmod(0o600)
        return address

    def open_inside(self) -> str:
        """Listen to this process alone: to what brings the frames of peers from somewhere else."""
        if not self._inside:
            self._inside = f"inproc://head-{id(self)}"
            self._bind(self._new_socket(), self._inside)
        return self._inside

    def bind_tcp(
        self,
        host: str,
        port: int,
        keys: CurveKeys,
        allowed: Sequence[str],
        *,
        or_any: bool = False,
        agents_only: bool = False,
    ) -> str:
        """Listen on TCP as a CURVE server that admits the ``allowed`` public keys only.

        Args:
            host: the address to listen on.
            port: 0 for any that is free.
            keys: the server's.
            allowed: public keys of clients.
            or_any: take another port if this one is in use.
            agents_only: only agents connect there, whose messages are smaller.

        Raises:
            PermanentBackendError: the port is in use, or the address is not of this machine.
        """
        router = self._new_socket()
        self._guard(router, keys, allowed)
        router.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        if agents_only:
            _bound_for_agents(router)
        if port:
            try:
                self._bind(router, f"tcp://{host}:{port}")
                return f"tcp://{host}:{port}"
            except PermanentBackendError:
                if not or_any:
                    raise
        return f"tcp://{host}:{router.bind_to_random_port(f'tcp://{host}')}"

    def _guard(self, router: zmq.Socket[bytes], keys: CurveKeys, allowed: Sequence[str]) -> None:
        """Admit nobody without one of these keys; before it listens."""
        if self._admission is None:
            self._admission = Admission(self.context)
        self._admission.admit(allowed)
        router.setsockopt(zmq.CURVE_SERVER, 1)
        router.setsockopt(zmq.CURVE_SECRETKEY, keys.secret.encode())

    def _new_socket(self) -> zmq.Socket[bytes]:
        router = self.context.socket(zmq.ROUTER)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        # A peer that connects under an id takes it over, and unread messages of the one before are
        # never read: so the messages of an agent need not name their incarnation.
        router.setsockopt(zmq.ROUTER_HANDOVER, 1)
        router.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        router.setsockopt(zmq.SNDHWM, HIGH_WATER_MARK)
        router.setsockopt(zmq.RCVHWM, HIGH_WATER_MARK)
        router.setsockopt(zmq.LINGER, 500)  # ms: the last acknowledgements leave
        self._sockets.append(router)
        self._poller.register(router, zmq.POLLIN)
        return router

    def _bind(self, router: zmq.Socket[bytes], address: str) -> None:
        try:
            router.bind(address)
        except zmq.ZMQError as error:
            raise PermanentBackendError(
                f"cannot listen on {address}: {error.strerror}",
                hint="another program has this address; choose another 'channel.port' (0: any)"
                if error.errno == zmq.EADDRINUSE
                else "",
            ) from error

    def admit(self, owner: str, routing_id: str) -> RouterLink:
        """Take messages of a peer under this id; they are handed out under ``owner``."""
        link = RouterLink(self, owner, routing_id.encode())
        self._links[link.routing_id] = link
        return link

    def rename(self, link: RouterLink, routing_id: bytes) -> None:
        """Take messages under a new id in place of the old one."""
        self._links.pop(link.routing_id, None)
        self._home.pop(link.routing_id, None)
        link.routing_id = routing_id
        self._links[routing_id] = link

    def admit_guests(self, token: str) -> None:
        """Take messages of all peers whose id is ``control:<token>:…``: the command line."""
        self._guest_prefix = f"control:{token}:".encode()

    def poll(self, timeout_s: float) -> list[PeerMessage]:
        """Return new messages of all peers; wait at most ``timeout_s`` for one."""
        ready = self._poller.poll(max(0, int(timeout_s * 1000 + 0.999)))
        received: list[PeerMessage] = []
        for source, _ in ready:
            if source is self._wake_in or isinstance(source, int):
                self._drain_wake()
            else:
                self._receive(source, received)
        return received

    def _receive(self, router: zmq.Socket[bytes], received: list[PeerMessage]) -> None:
        for _ in range(MAX_PER_POLL):
            if not int(router.getsockopt(zmq.EVENTS)) & POLLIN:  # cheaper than a raised Again
                return
            frames = router.recv_multipart(zmq.NOBLOCK)
            peer = frames[0]
            if len(frames) != 2:
                self._refusals.count("frames")
                continue
            if not self._knows(peer):
                self._refusals.count("stranger")
                continue
            self._home[peer] = router
            link = self._links.get(peer)
            if link is not None:
                link.flush()
            received.append(PeerMessage(link.owner if link else "", peer, frames[1]))

    def _knows(self, peer: bytes) -> bool:
        # A lookup by hash does not show how much of a guess was right; a comparison could.
        if peer in self._links:
            return True
        prefix = self._guest_prefix
        return bool(prefix) and hmac.compare_digest(peer[: len(prefix)], prefix)

    def send(self, routing_id: bytes, payload: bytes) -> bool:
        """Send now; false if the peer is not connected or its queue is full."""
        router = self._home.get(routing_id)
        if router is None:
            return False
        try:
            router.send(routing_id, SEND_FIRST)
            router.send(payload, SEND_LAST)
        except zmq.Again:
            return False
        except zmq.ZMQError as error:
            if error.errno == zmq.EHOSTUNREACH:
                return False
            raise
        return True

    def leave(self, routing_id: bytes) -> None:
        """Forget a guest that has been answered."""
        self._home.pop(routing_id, None)

    def wake(self) -> None:
        """Let :meth:`poll` return now. From any thread; does nothing once it is closed."""
        try:
            self._wake_out.send(b"w")
        except OSError:
            pass  # awake already, or closed

    def _drain_wake(self) -> None:
        try:
            self._wake_in.recv(4096)
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Close all sockets; messages on their way get half a second."""
        for router in self._sockets:
            router.close()
        if self._admission is not None:
            self._admission.close()
        self._wake_in.close()
        self._wake_out.close()


def _bound_for_agents(router: zmq.Socket[bytes]) -> None:
    router.setsockopt(zmq.MAXMSGSIZE, MAX_AGENT_FRAME_BYTES)
    router.setsockopt(zmq.RCVHWM, AGENT_FRAMES_KEPT)
