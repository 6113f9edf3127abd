"""The servers that run: one small file each, by which commands find and ask them."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
from pathlib import Path
from typing import Any, Final

import msgspec

from dispatcher.errors import PassingBackendError, PermanentBackendError, UserError
from dispatcher.web.keys import digest_of
from dispatcher.web.settings import WebSettings
from trial_runtime import durable_file

_FOLDER: Final = "servers"

#: Seconds that a server has to answer.
_ANSWER_S: Final = 5.0

_MOST_BYTES: Final = 1 << 20


class Instance(msgspec.Struct, frozen=True):
    """One server that runs, or did."""

    pid: int
    machine: str
    host: str
    port: int
    socket: str
    prefix: str
    tls: bool
    shown: str  # the name that links have
    started_at: float
    proxy: str = ""  # the name of a proxy before it, which encrypts

    @property
    def address(self) -> str:
        """The beginning of links to it."""
        if self.proxy:
            return f"https://{self.proxy}{self.prefix}"
        if self.socket:
            return f"http://localhost{self.prefix}"
        host = f"[{self.shown}]" if ":" in self.shown and "." not in self.shown else self.shown
        return f"http{'s' if self.tls else ''}://{host}:{self.port}{self.prefix}"

    def ask(self, method: str, path: str, token: str = "") -> Any:
        """Ask it over HTTP and return its JSON, or its text.

        Args:
            method: of the request.
            path: below the prefix.
            token: the owner's; empty for none.

        Raises:
            PassingBackendError: it does not answer, or is none of ours.
        """
        connection = _connection(self)
        headers = {"Host": "localhost"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            body = answer.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise PassingBackendError(
                f"the page at {self.address} does not answer: {error}"
            ) from error
        finally:
            connection.close()
        if answer.status != 200:
            raise PassingBackendError(
                f"the page at {self.address} answered {answer.status}",
                hint="it may have been started with another token: stop it, and start it again",
            )
        kind = answer.headers.get("Content-Type", "")
        return msgspec.json.decode(body) if kind == "application/json" else body.decode()

    def answers(self) -> bool:
        """Whether it runs, here, and answers."""
        if self.machine != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
            return bool(self.ask("GET", "/healthz") == "ok\n")
        except (OSError, PassingBackendError):
            return False


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_ANSWER_S)
        self._path = path

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_ANSWER_S)
        self.sock.connect(self._path)


def _connection(instance: Instance) -> http.client.HTTPConnection:
    if instance.socket:
        return _UnixConnection(instance.socket)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(instance.host, instance.host)  # noqa: S104
    if instance.tls:
        # Its certificate names how others reach it; here the token's owner asks their own process.
        context = ssl._create_unverified_context()  # noqa: S323
        return http.client.HTTPSConnection(host, instance.port, timeout=_ANSWER_S, context=context)
    return http.client.HTTPConnection(host, instance.port, timeout=_ANSWER_S)


def path_of(settings: WebSettings) -> Path:
    """Return the file of a server, by where it listens."""
    folder = settings.state / _FOLDER
    if settings.socket is not None:
        return folder / f"{digest_of(str(settings.socket.absolute()))[:16]}.json"
    return folder / f"{settings.port}.json"


def publish(path: Path, instance: Instance) -> None:
    """Write a server's file. Raises ``PermanentBackendError``."""
    try:
        path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        durable_file.replace(path, msgspec.json.encode(instance), durable=False)
    except OSError as error:
        raise PermanentBackendError(
            f"where the page is served cannot be written down: {error.strerror}", where=str(path)
        ) from error


def read(path: Path) -> Instance | None:
    """Read a server's file; None if there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Instance)
    except (OSError, msgspec.MsgspecError):
        return None


def running(state: Path) -> list[Instance]:
    """List the servers of this user that run on this machine, the newest first."""
    folder = state / _FOLDER
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    found = [one for one in map(read, files) if one is not None and one.answers()]
    return sorted(found, key=lambda one: -one.started_at)


def chosen(state: Path, port: int | None, path: Path | None) -> Instance:
    """Return the server that a command means: of a port or socket, else the newest.

    Args:
        state: the state folder.
        port: of the server; None: any.
        path: of its socket; None for one that has a port.

    Raises:
        UserError: there is none.
    """
    for one in running(state):
        if path is not None and one.socket == str(path.absolute()):
            return one
        if path is None and port in (None, one.port):
            return one
    where = f" on port {port}" if port is not None else ""
    raise UserError(f"no page is served{where}", hint="start it with: bequeath web")
