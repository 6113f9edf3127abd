"""The user at the other end of a connection of this machine, as the kernel knows it."""

from __future__ import annotations

import ipaddress
import socket
import sys
from pathlib import Path
from typing import Final

from dispatcher.web.connection import BoundedConnection

#: Tables of connections, by whether their addresses are of IPv6.
TABLES: Final = {False: Path("/proc/net/tcp"), True: Path("/proc/net/tcp6")}

#: The key under which a request's state has the user.
PEER: Final = "peer_uid"

Address = tuple[str, int]


def is_known_here() -> bool:
    """Whether this system says whose a connection is."""
    return TABLES[False].exists()


def owner_of(client: Address, server: Address) -> int | None:
    """Return the user id whose process holds the client's end; None if that cannot be known.

    A connection whose process has let go of it has no owner: the kernel then says 0, which is not
    root.

    Args:
        client: address and port of the other end.
        server: those of ours.
    """
    for version_6 in (False, True):
        wanted = (_as_written(client, version_6), _as_written(server, version_6))
        if None in wanted:
            continue
        try:
            lines = TABLES[version_6].read_text("ascii").splitlines()[1:]
        except (OSError, UnicodeDecodeError):
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 9 and (fields[1], fields[2]) == wanted and fields[9] != "0":
                return int(fields[7])
    return None


def _as_written(address: Address, version_6: bool) -> str | None:
    """Return an address as the kernel's table has it; None if that table cannot have it."""
    try:
        host = ipaddress.ip_address(address[0])
    except ValueError:
        return None
    packed = host.packed
    if version_6 and host.version == 4:  # a socket of IPv6 that speaks to an address of IPv4
        packed = ipaddress.IPv6Address(f"::ffff:{host}").packed
    elif version_6 != (host.version == 6):
        return None
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    text = "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
    return f"{text}:{address[1]:04X}"


class KnownConnection(BoundedConnection):
    """A connection that says to the application whose it is."""

    def connection_made(self, transport) -> None:  # type: ignore[no-untyped-def]
        """Look who it is, once: while it lasts no other can have its port."""
        super().connection_made(transport)
        owner = None
        if self.client is not None and self.server is not None and self.server[1] is not None:
            owner = owner_of(self.client, (self.server[0], self.server[1]))
        self.app_state = {**self.app_state, PEER: owner}


def is_free(port: int) -> bool:
    """Whether nothing listens at a port of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
