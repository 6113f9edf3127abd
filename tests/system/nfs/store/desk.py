"""Orders to the clerks in the clients, from the tests' process."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.system.nfs.machine import ROOT, Machine, Running
from tests.system.nfs.rig import Network
from tests.system.nfs.store.clerk import PORT

CLERK = ROOT / "tests/system/nfs/store/clerk.py"

_CLONE_NEWNET = 0x40000000


class Refused(Exception):
    """What a clerk's order ended with; ``name`` is the class of the error."""

    def __init__(self, name: str, text: str, seconds: float) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.text = text
        self.seconds = seconds


class Desk:
    """A connection to the clerk of one client; orders are done one after another."""

    def __init__(self, network: Network, machine: Machine) -> None:
        self.machine = machine
        self.seconds = 0.0  # that the last order took
        connection = _connect(network, machine.address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lines = connection.makefile("rw", encoding="ascii")
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=machine.name)

    def ask(self, what: str, *, limit_s: float = 120.0, **how: Any) -> Any:
        """Have it do something and wait for what comes of it.

        Raises:
            Refused: it ended with an error.
        """
        return self.begin(what, **how).result(limit_s)

    def begin(self, what: str, **how: Any) -> Future[Any]:
        """Have it do something, and go on."""
        return self._thread.submit(self._ask, what, how)

    def _ask(self, what: str, how: dict[str, Any]) -> Any:
        self._lines.write(json.dumps({"do": what, **how}) + "\n")
        self._lines.flush()
        line = self._lines.readline()
        if not line:
            raise ConnectionError(f"the clerk of {self.machine.name} is gone")
        told = json.loads(line)
        self.seconds = told["s"]
        if "error" in told:
            raise Refused(told["error"], told["text"], told["s"])
        return told["value"]

    def close(self) -> None:
        """Leave, also in the middle of an order."""
        self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.shutdown()
        self._lines.close()
        self._connection.close()


def employ(machine: Machine, program: Path = CLERK) -> Running:
    """Start the clerk of a client, as the trials' user, and wait until it listens."""
    clerk = machine.start(*machine.user_argv(*machine.python_argv(str(program))))
    listens = machine.await_(lambda: "listening" in clerk.said() or not clerk.alive(), 280)
    assert listens, clerk.said()
    assert clerk.alive(), clerk.said()
    return clerk


@contextmanager
def desks(network: Network, *machines: Machine) -> Iterator[list[Desk]]:
    """Connections to the clerks of some clients."""
    found: list[Desk] = []
    try:
        for machine in machines:
            found.append(Desk(network, machine))
        yield found
    finally:
        for desk in found:
            desk.close()


def _connect(network: Network, address: str) -> socket.socket:
    """A connection within the rig's network: a thread enters it, and no other."""
    found: Future[socket.socket] = Future()

    def enter() -> None:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(network.inside()[1].removeprefix("--net=")) as namespace:
                if libc.setns(namespace.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            found.set_result(socket.create_connection((address, PORT), timeout=None))
        except OSError as error:
            found.set_exception(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return found.result()
