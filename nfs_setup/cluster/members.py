"""Machines of a cluster: the login and the request of each, and one that is logged in."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Ran
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


class Unreachable(MachineRefuses):
    """Raised when no login works there, or the connection was lost."""


class Remote(Protocol):
    """One machine, logged in. Used by one thread."""

    def run(self, argv: Sequence[str], *, stdin: bytes, limit_s: float) -> Ran:
        """Run a program. Its code is 127 if there is no such program, 124 if it took too long.

        Args:
            argv: the program and its arguments.
            stdin: all of its input.
            limit_s: seconds; this blocks no longer.

        Raises:
            Unreachable: if the connection is lost.
        """


#: Log in at a machine, and out again at the end of the context. Blocks.
Connect = Callable[[Member], AbstractContextManager[Remote]]

#: Not needed where a request is carried out.
STAYS = ("cluster",)


@dataclass(frozen=True)
class Program:
    """This package, but for :data:`STAYS`, packed for a Python of 3.9 that has nothing of it.

    Attributes:
        code: goes first into its input, before the request.
        arguments: make a Python run it, if it came whole.
    """

    code: bytes
    arguments: tuple[str, ...]

    def command(self, python: str) -> tuple[str, ...]:
        """Return the command that runs it."""
        return (python, *self.arguments)
