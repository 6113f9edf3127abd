"""A machine of a cluster: its login, and the request for it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from nfs_setup.paths import is_host_name
from nfs_setup.request import ClientRequest, ServerRequest

SERVER, CLIENT = "server", "client"


@dataclass(frozen=True)
class Login:
    """The way to a machine. Empty values leave it to ``~/.ssh/config`` and the defaults.

    Attributes:
        password, passphrase: references (``env:NAME``, ``file:PATH``), never the secret.
        local: it is the machine this runs on; nothing of SSH is used.
    """

    host: str
    port: int = 0
    user: str = ""
    key_file: str = ""
    passphrase: str = ""
    password: str = ""
    known_hosts: str = ""
    jump: Login | None = None
    local: bool = False


@dataclass(frozen=True)
class Member:
    """One machine. ``name`` is unique in its inventory; ``where`` is its place in the file."""

    name: str
    login: Login
    request: ServerRequest | ClientRequest
    python: str = "python3"
    where: str = ""

    @property
    def role(self) -> str:
        """``server`` or ``client``."""
        return SERVER if isinstance(self.request, ServerRequest) else CLIENT


@dataclass(frozen=True)
class Inventory:
    """One server, and the clients that mount what it exports."""

    server: Member
    clients: tuple[Member, ...]

    @property
    def members(self) -> tuple[Member, ...]:
        """All machines, the server first."""
        return (self.server, *self.clients)


def is_host(text: str) -> bool:
    """Whether a text may name a machine: as a host name, or an address without a network."""
    return is_address(text) or is_host_name(text)


def is_address(text: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
