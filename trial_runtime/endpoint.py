"""Endpoints: the address of a peer's other side, and the socket that connects to it.

An endpoint travels in a file of mode 0600, never on a command line. The routing id holds
the peer's secret. On ``ipc`` (a folder of mode 0700) it authenticates the peer; on
``tcp`` CURVE encrypts and authenticates as well.
"""

from __future__ import annotations

import msgspec
import zmq


class Endpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """An address, our routing id there, and for TCP the CURVE keys (Z85 text)."""

    address: str
    routing_id: str = ""
    server_key: str = ""
    public_key: str = ""
    secret_key: str = ""

    def __repr__(self) -> str:
        return f"Endpoint({self.address!r})"  # secrets have no place in a traceback


#: Frames above this size close the connection of the peer that sends them (bytes).
MAX_MESSAGE_BYTES = 8 << 20

#: How often the other end is asked whether it is there, and silence after which a connection is
#: made anew (milliseconds). A head that only hangs is not gone: its I/O thread answers.
BEAT_MS, GONE_MS = 5_000, 30_000

_HERE = ("ipc://", "inproc://", "tcp://127.", "tcp://localhost:", "tcp://[::1]:")


def crosses_a_network(address: str) -> bool:
    """Whether the peer may be on another machine, without a tunnel that looks after itself."""
    return not address.startswith(_HERE)


def connect(
    context: zmq.Context[zmq.Socket[bytes]], endpoint: Endpoint, *, immediate: bool = False
) -> zmq.Socket[bytes]:
    """A DEALER socket connected to the endpoint; returns before the connection stands.

    Args:
        context: ZeroMQ's context; the caller owns it, and the socket.
        endpoint: the address, and the keys where it is TCP.
        immediate: queue nothing while there is no connection; sending raises ``zmq.Again`` then.
    """
    socket = context.socket(zmq.DEALER)
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
    if crosses_a_network(endpoint.address):
        # A peer that has lost its power sends nothing, and TCP believes in it for a quarter hour.
        socket.setsockopt(zmq.HEARTBEAT_IVL, BEAT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, GONE_MS)
    socket.connect(endpoint.address)
    return socket
