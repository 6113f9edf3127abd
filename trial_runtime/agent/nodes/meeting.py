"""The place where the agents of one allocation meet: a folder that all of its nodes see.

Each agent gets a rank, by the engine or by a claim. Rank 0 writes down where it listens, and the
others read it. Names that are not there yet are never opened: a client of a network file system
remembers for half a minute that there is no such file, but looks anew when it lists the folder.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from hashlib import blake2s
from pathlib import Path

import msgspec

from trial_runtime import durable_file
from trial_runtime.errors import BequeathError

#: Gives the address at which the other nodes reach this one; found out if not set.
ADDRESS_VARIABLE = "BEQUEATH_NODE_ADDRESS"

#: Added to the rank that the engine gives, where it numbers the nodes of each role from 0.
OFFSET_VARIABLE = "BEQUEATH_RANK_OFFSET"

#: Nodes of one allocation begin within this time of one another (seconds): images are pulled.
MEET_S = 900.0

#: Marks of allocations that are over, beside their folders: those of the newest are kept, for nodes
#: that come late.
MOST_OVER = 8
_OVER = ".over"

_PAUSE_S = 0.25
_LEADER = "leader"

#: Somewhere beyond our networks: an address for documentation, to which nothing is sent.
_ELSEWHERE = ("192.0.2.1", 9)


_TOO_LATE = "the allocation of this node is over already: the other nodes have left, or given up"


class CannotMeet(BequeathError):
    """Raised when an agent has no place among the nodes of its allocation; says why."""


class Leader(msgspec.Struct, frozen=True):
    """The place at which rank 0 listens.

    ``host``: its address alone. ``token``: shows who has read this, and nobody else can.
    """

    address: str
    host: str
    server_key: str
    token: str


class Meeting:
    """The meeting of one allocation.

    Args:
        home: the folder of the worker, which all nodes see.
        ticket: the secret of the allocation.
        nodes: how many there are.
    """

    def __init__(self, home: Path, ticket: str, nodes: int) -> None:
        digest = blake2s(ticket.encode(), digest_size=8).hexdigest()
        self._home = home
        self._folder = home / f"meeting-{digest}"
        self._over = home / f"meeting-{digest}{_OVER}"
        self._nodes = nodes

    def rank(self, variable: str, environment: Mapping[str, str] = os.environ) -> int:
        """The rank of this agent: the engine's, or else the first that nobody has.

        Args:
            variable: holds the rank, where the engine has one for each.
            environment: of this agent.

        Raises:
            CannotMeet: there is none left, the engine's is no rank, or the allocation is over.
            OSError: the folder cannot be written.
        """
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._over.name in os.listdir(self._home):
            raise CannotMeet(_TOO_LATE)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        given = environment.get(variable)
        if given is not None:
            offset = environment.get(OFFSET_VARIABLE, "0")
            is_number = (given + offset).isascii() and given.isdigit() and offset.isdigit()
            if not is_number or int(given) + int(offset) >= self._nodes:
                text = f"{variable} is {given!r}"
                text += f", {OFFSET_VARIABLE} is {offset!r}" if offset != "0" else ""
                raise CannotMeet(f"{text}, and this allocation has {self._nodes} nodes")
            return int(given) + int(offset)
        for rank in range(self._nodes):
            try:
                claim = os.open(
                    self._folder / f"rank-{rank}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600
                )
            except FileExistsError:
                continue
            with open(claim, "w", encoding="utf-8") as file:
                file.write(f"{socket.gethostname()} {os.getpid()}\n")
            return rank
        raise CannotMeet(
            f"all {self._nodes} nodes of this allocation are there already: somebody has started "
            "one of them a second time. Switch restarts of your scheduler off"
        )

    def open(self, leader: Leader) -> None:
        """Write down where rank 0 listens. Raises ``OSError``."""
        durable_file.replace(self._folder / _LEADER, msgspec.json.encode(leader))

    def leader(
        self, limit_s: float = MEET_S, clock: Callable[[], float] = time.monotonic
    ) -> Leader:
        """Wait until rank 0 has come.

        Args:
            limit_s: so long at most (seconds).
            clock: monotonic seconds.

        Raises:
            CannotMeet: it has not come, or the allocation is over.
        """
        give_up = clock() + limit_s
        while True:
            if self._is_over():
                raise CannotMeet(_TOO_LATE)
            try:
                if _LEADER in os.listdir(self._folder):
                    content = (self._folder / _LEADER).read_bytes()
                    return msgspec.json.decode(content, type=Leader)
            except FileNotFoundError:
                if not self._folder.exists():
                    raise CannotMeet(_TOO_LATE) from None
            except (OSError, msgspec.MsgspecError) as error:
                if clock() >= give_up:
                    raise CannotMeet(f"cannot read where rank 0 listens: {error}") from error
            if clock() >= give_up:
                self._mark_over()  # who comes now has nobody to meet
                raise CannotMeet(f"rank 0 of this allocation has not come within {limit_s:.0f} s")
            time.sleep(_PAUSE_S)

    def _is_over(self) -> bool:
        try:
            return self._over.name in os.listdir(self._home)
        except OSError:
            return False  # its file server is away, or looks at its folder say more

    def _mark_over(self) -> None:
        """Let nobody wait who comes from now on; the oldest marks of others go."""
        try:
            os.close(os.open(self._over, os.O_WRONLY | os.O_CREAT, 0o600))
            marks = sorted(
                self._home.glob(f"meeting-*{_OVER}"), key=lambda mark: mark.stat().st_mtime
            )
            for mark in marks[:-MOST_OVER]:
                mark.unlink(missing_ok=True)
        except OSError:
            pass  # then they wait, as long as for one that is late

    def close(self) -> None:
        """Remove the folder: the allocation is over."""
        self._mark_over()
        try:
            for name in os.listdir(self._folder):
                (self._folder / name).unlink(missing_ok=True)
            self._folder.rmdir()
        except OSError:
            pass  # somebody is late; its experiment's end removes it


def draw_token() -> str:
    """A new secret of a meeting."""
    return secrets.token_hex(16)


def own_address(head: str = "", environment: Mapping[str, str] = os.environ) -> str:
    """The address at which the other nodes of the allocation reach this one.

    Args:
        head: the address of the head: the way there tells which of our addresses others see.
        environment: may name the address, or a name of this host.
    """
    given = environment.get(ADDRESS_VARIABLE, "")
    if given:
        return _resolved(given) or given
    host, _, port = head.removeprefix("tcp://").rpartition(":")
    if head.startswith("tcp://") and port.isdigit():
        address = _way_to(host.strip("[]"), int(port))
        if address:
            return address
    own = _resolved(socket.gethostname())
    if not own or _is_loopback(own):  # as Debian installs a machine
        own = _way_to(*_ELSEWHERE) or own
    return own or "127.0.0.1"


def _resolved(name: str) -> str:
    """An address of a host; one of its loopback only if it has no other."""
    try:
        entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return ""
    addresses = [str(entry[4][0]) for entry in entries]
    beyond = [each for each in addresses if not _is_loopback(each)]
    return (beyond or addresses or [""])[0]


def _way_to(host: str, port: int) -> str:
    """Our address on the way to a host beyond this one; nothing is sent."""
    try:
        family, kind, protocol, _, there = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as way:
            way.connect(there)
            address = str(way.getsockname()[0])
    except OSError:
        return ""
    return "" if _is_loopback(address) else address


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"
