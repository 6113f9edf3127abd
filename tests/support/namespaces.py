"""Small networks of their own: namespaces joined by a bridge, from which nothing gets out.

Needs root. A cable can be cut and mended; a process or a socket can be placed in a namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.support.failures import ENABLES

_CLONE_NEWNET = 0x40000000
_count = itertools.count()


def why_not() -> str:
    """Why no network can be made here; empty if it can."""
    missing = [name for name in ("ip", "bridge", "nsenter") if not shutil.which(name)]
    if missing:
        return f"needs {', '.join(missing)}: {ENABLES}"
    if os.geteuid() != 0:
        return "needs root"
    name = f"bq{os.getpid()}-try"
    try:
        _do("ip", "netns", "add", name)
    except subprocess.CalledProcessError as error:
        return f"may make no network namespace: {error.stderr.strip()}"
    try:
        _do("ip", "-n", name, "link", "add", "br0", "type", "bridge")
    except subprocess.CalledProcessError as error:
        return f"may make no bridge: {error.stderr.strip()}"
    finally:
        _do("ip", "netns", "del", name)
    return ""


def _do(*command: str, text: str | None = None) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, input=text, timeout=60)


class Network:
    """A bridge in a namespace of its own (``client``), and a namespace for each machine.

    Machine number n has the address 10.77.0.(10 + n); the client is 10.77.0.1. The same
    addresses may be in use in another network beside it.
    """

    #: The client's address, as machines see it.
    gateway = "10.77.0.1"

    def __init__(self) -> None:
        self._tag = f"bq{os.getpid()}-{next(_count)}"
        self.client = f"{self._tag}-c"
        self._made: list[str] = []
        self._add(self.client)
        self._ip(
            self.client,
            "link set lo up",
            f"link add br0 address {_mac(0)} type bridge",
            f"addr add {self.gateway}/24 dev br0",
            "link set br0 up",
        )

    def _add(self, name: str) -> None:
        _do("ip", "netns", "add", name)
        self._made.append(name)

    @staticmethod
    def _ip(name: str, *lines: str) -> None:
        _do("ip", "-n", name, "-batch", "-", text="\n".join(lines))

    @staticmethod
    def path(name: str) -> str:
        """The file by which the kernel names a namespace."""
        return f"/run/netns/{name}"

    def name(self, number: int) -> str:
        """The namespace of a machine."""
        return f"{self._tag}-{number}"

    @staticmethod
    def address(number: int) -> str:
        """The address of a machine."""
        return f"10.77.0.{10 + number}"

    def plug_in(self, number: int) -> None:
        """Make the machine's namespace and lay the cable; no harm if it is there."""
        name, address = self.name(number), self.address(number)
        if name in self._made:
            return
        self._add(name)
        # Who has which address is written down, so that a cut is silence and not a failed ARP.
        self._ip(
            self.client,
            f"link add v{number} type veth peer name eth0 address {_mac(number)} netns {name}",
            f"link set v{number} master br0 up",
            f"neigh replace {address} lladdr {_mac(number)} dev br0 nud permanent",
        )
        self._ip(
            name,
            "link set lo up",
            f"addr add {address}/24 dev eth0",
            "link set eth0 up",
            f"neigh replace 10.77.0.1 lladdr {_mac(0)} dev eth0 nud permanent",
        )

    def pull_out(self, number: int) -> None:
        """Take cable and namespace away: nothing that a dying machine sends gets out."""
        name = self.name(number)
        if name in self._made:
            self._ip(self.client, f"link del v{number}")
            _do("ip", "netns", "del", name)
            self._made.remove(name)

    def cut(self, number: int) -> None:
        """From now on every packet of this machine is lost, without a word."""
        self._port(number, "0")

    def heal(self, number: int) -> None:
        """The end of :meth:`cut`."""
        self._port(number, "3")

    def _port(self, number: int, state: str) -> None:
        where = ["nsenter", f"--net={self.path(self.client)}"]
        _do(*where, "bridge", "link", "set", "dev", f"v{number}", "state", state)

    def hide(self, number: int) -> None:
        """The client finds no way to this machine; its neighbours do."""
        self._ip(self.client, f"route replace unreachable {self.address(number)}")

    def show(self, number: int) -> None:
        """The end of :meth:`hide`."""
        self._ip(self.client, f"route del unreachable {self.address(number)}")

    def inside(self, command: list[str], **settings: Any) -> subprocess.Popen[bytes]:
        """Start a process on the client's side."""
        return subprocess.Popen(
            ["nsenter", f"--net={self.path(self.client)}", *command], **settings
        )

    def dial(self, address: tuple[str, int], timeout_s: float) -> socket.socket:
        """A connection from the client's side, for this process.

        A socket stays in the namespace of the thread that made it.
        """
        made: list[socket.socket | OSError] = []

        def make() -> None:
            try:
                with open(self.path(self.client), "rb") as file:
                    if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                made.append(socket.create_connection(address, timeout_s))
            except OSError as error:
                made.append(error)

        thread = threading.Thread(target=make, name="dial from a namespace")
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]

    def remove(self) -> None:
        """Take everything away."""
        for name in reversed(self._made):
            with contextlib.suppress(subprocess.CalledProcessError):
                if Path(self.path(name)).exists():
                    _do("ip", "netns", "del", name)
        self._made.clear()


def _mac(number: int) -> str:
    return f"02:77:00:00:00:{number:02x}"
