"""Endpoints: the address of a peer's other side, and the socket that connects to it.

An endpoint travels in a file of mode 0600, never on a command line. The routing id holds
the peer's secret. On ``ipc`` (a folder of mode 0700) it authenticates the peer; on
``tcp`` CURVE encrypts and authenticates as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import msgspec

if TYPE_CHECKING:
    import zmq


class JumpHost(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine with an SSH server that carries connections to the head.

    ``host_keys``: those that it may show, each as ``ssh-ed25519 AAAA…``; it shows one of them or is
    sent nothing. ``key_files``: of the private key, where the agent runs, in the order in which
    they are tried; those that are not there are passed over.
    """

    host: str
    port: int
    user: str
    host_keys: tuple[str, ...]
    key_files: tuple[str, ...]

    @property
    def label(self) -> str:
        """The machine, for people."""
        return f"{self.user}@{self.host}" + ("" if self.port == 22 else f":{self.port}")


class Endpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """An address, our routing id there, and for TCP the CURVE keys (Z85 text).

    ``way``: the word for this way to the head, for people. ``jump``: the machine from which the
    address is dialed, if that is another one.
    """

    address: str
    routing_id: str = ""
    server_key: str = ""
    public_key: str = ""
    secret_key: str = ""
    way: str = ""
    jump: Optional[JumpHost] = None

    def __repr__(self) -> str:
        return f"Endpoint({self.address!r})"  # secrets have no place in a traceback


#: Frames above this size close the connection of the peer that sends them (bytes).
MAX_MESSAGE_BYTES = 8 << 20

#: How often the other end is asked whether it is there, and silence after which a connection is
#: made anew (milliseconds). A head that only hangs is not gone: its I/O thread answers.
BEAT_MS, GONE_MS = 5_000, 30_000

#: The beginning of an address that is a folder, see :mod:`trial_runtime.folder_line`.
FOLDER = "folder://"

_HERE = ("ipc://", "inproc://", "tcp://127.", "tcp://localhost:", "tcp://[::1]:")


def crosses_a_network(address: str) -> bool:
    """Whether the peer may be on another machine, without a tunnel that looks after itself."""
    return not address.startswith(_HERE)


def prepare(socket: zmq.Socket[bytes], endpoint: Endpoint, *, immediate: bool = False) -> None:
    """Make a DEALER ready to be connected to an endpoint.

    Args:
        socket: that is connected to nothing yet.
        endpoint: our routing id there, and the keys where it is TCP.
        immediate: queue nothing while there is no connection; sending raises ``zmq.Again`` then.
    """
    import zmq  # not for those who only read an address

    socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    socket.setsockopt(zmq.LINGER, 0)
    if immediate:
        socket.setsockopt(zmq.IMMEDIATE, 1)
    if endpoint.routing_id:
        socket.setsockopt(zmq.ROUTING_ID, endpoint.routing_id.encode())
    if endpoint.server_key:
        socket.setsockopt(zmq.CURVE_SERVERKEY, endpoint.server_key.encode())
        socket.setsockopt(zmq.CURVE_PUBLICKEY, endpoint.public_key.encode())
        socket.setsockopt(zmq.CURVE_SECRETKEY, endpoint.secret_key.encode())
    if endpoint.jump is not None or crosses_a_network(endpoint.address):
        # A peer that has lost its power sends nothing, and TCP believes in it for a quarter hour.
        socket.setsockopt(zmq.HEARTBEAT_IVL, BEAT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, GONE_MS)


def connect(
    context: zmq.Context[zmq.Socket[bytes]], endpoint: Endpoint, *, immediate: bool = False
) -> zmq.Socket[bytes]:
    """A DEALER socket connected to the endpoint; returns before the connection stands.

    Args:
        context: ZeroMQ's context; the caller owns it, and the socket.
        endpoint: the address, and the keys where it is TCP.
        immediate: queue nothing while there is no connection; sending raises ``zmq.Again`` then.
    """
    import zmq

    socket = context.socket(zmq.DEALER)
    prepare(socket, endpoint, immediate=immediate)
    socket.connect(endpoint.address)
    return socket
