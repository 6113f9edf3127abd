"""Ports carried through a connection. They end with it; their owner makes them anew."""

from __future__ import annotations

import logging
import socket
import threading
from typing import Any

from dispatcher.ssh.errors import ForwardRefused
from dispatcher.ssh.link import Link
from trial_runtime.tunnel.carrying import join

_CONNECT_S = 10.0

#: Connections by way of one machine's ports at a time. Anybody on that machine may connect to
#: its loopback, and each connection costs us two threads and a socket.
MOST_CONNECTIONS = 64
_log = logging.getLogger(__name__)


#: An address near us: host and port, or the path of a socket file.
Near = tuple[str, int] | str


class ReverseForwards:
    """Ports on the machine's loopback that lead to addresses near us.

    paramiko has one handler for all ports of a transport, so they are told apart here. Each
    connection costs two threads, which end with it; connections beyond
    :data:`MOST_CONNECTIONS` are closed at once.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._targets: dict[int, Near] = {}
        self._lock = threading.Lock()
        self._served = 0

    @property
    def served(self) -> int:
        """The connections that are carried now."""
        return self._served

    def add(self, local: Near) -> int:
        """Ask the machine to listen on its 127.0.0.1; returns the port. Blocks for an answer.

        Raises:
            ForwardRefused: it does not.
            ConnectionLost: see there.
        """
        import paramiko

        try:
            with self._link.asking() as transport:
                port = int(transport.request_port_forward("127.0.0.1", 0, self._accept))
        except (paramiko.SSHException, EOFError, OSError) as error:
            if self._link.ends_within(0):
                raise self._link.lost("a port was asked for") from error
            raise ForwardRefused(
                "this machine forwards no port to us",
                hint="AllowTcpForwarding in its sshd_config must be yes or remote",
                where=self._link.label,
            ) from error
        with self._lock:
            self._targets[port] = local
        return port

    def _accept(self, channel: Any, _origin: Any, server: tuple[str, int]) -> None:
        # Called in the transport's thread, which must not wait.
        thread = threading.Thread(
            target=self._take, args=(channel, server[1]), name=f"ssh port {server[1]}", daemon=True
        )
        thread.start()

    def _take(self, channel: Any, port: int) -> None:
        with self._lock:
            local = self._targets.get(port)
            refused = local is None or self._served >= MOST_CONNECTIONS
            self._served += not refused
        if refused:
            channel.close()
            return
        assert local is not None
        try:
            self._serve(channel, port, local)
        finally:
            with self._lock:
                self._served -= 1

    def _serve(self, channel: Any, port: int, local: Near) -> None:
        try:
            near = _dial(local)
        except OSError as error:
            _log.debug("a connection to port %d finds nobody at %s: %s", port, local, error)
            channel.close()
            return
        join(channel, near)


def _dial(address: Near) -> socket.socket:
    if not isinstance(address, str):
        return socket.create_connection(address, _CONNECT_S)
    near = socket.socket(socket.AF_UNIX)
    try:
        near.settimeout(_CONNECT_S)
        near.connect(address)
    except BaseException:
        near.close()
        raise
    return near
