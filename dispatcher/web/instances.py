"""The servers that run: one small file each, by which commands find and ask them."""

from __future__ import annotations

import hmac
import http.client
import os
import secrets
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from dispatcher.errors import PassingBackendError, PermanentBackendError, UserError
from dispatcher.web.keys import digest_of, proof_of
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

    @property
    def mark(self) -> str:
        """The text that stands for it in the proof that it is ours: no other process has it."""
        return _mark(self.machine, self.pid, self.socket, self.port)

    def ask(self, method: str, path: str, token: str) -> Any:
        """Ask it over HTTP and return its JSON, or its text.

        Args:
            method: of the request.
            path: below the prefix.
            token: the owner's. Nobody gets it who has not shown that he has it already.

        Raises:
            PassingBackendError: it does not answer, or is none of ours.
        """
        with self._proven(token) as connection:
            headers = {"Authorization": f"Bearer {token}"}
            status, kind, body = self._exchange(connection, method, path, headers)
        if status != 200:
            raise PassingBackendError(
                f"the page at {self.address} answered {status}",
                hint="it may have been started with another token: stop it, and start it again",
            )
        return msgspec.json.decode(body) if kind == "application/json" else body.decode()

    def lives(self) -> bool:
        """Whether a process of its number runs here, which may be another one by now."""
        if self.machine != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return True

    def answers(self, token: str) -> bool:
        """Whether it runs, here, and shows that it has the owner's token."""
        if not self.lives():
            return False
        try:
            with self._proven(token):
                return True
        except PassingBackendError:
            return False

    @contextmanager
    def _proven(self, token: str) -> Iterator[http.client.HTTPConnection]:
        """Yield a connection to it: by it alone, as a port may be another program's a moment later.

        Raises:
            PassingBackendError: what is there does not answer, or has not the token.
        """
        challenge = secrets.token_urlsafe(24)
        with closing(_connection(self)) as connection:
            path = f"/healthz?challenge={challenge}"
            _, _, body = self._exchange(connection, "GET", path, {})
            connection.auto_open = 0
            expected = f"ok {proof_of(token, self.mark, challenge)}\n".encode()
            if not token or not hmac.compare_digest(body, expected):
                raise PassingBackendError(
                    f"what answers at {self.address} has not shown that it is your page",
                    hint="another program has its place, or it is of an older version: stop it, "
                    "and start it again",
                )
            yield connection

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        headers: dict[str, str],
    ) -> tuple[int, str, bytes]:
        try:
            connection.request(method, path, headers={"Host": "localhost", **headers})
            answer = connection.getresponse()
            body = answer.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise PassingBackendError(
                f"the page at {self.address} does not answer: {error}"
            ) from error
        return answer.status, answer.headers.get("Content-Type", ""), body


def _mark(machine: str, pid: int, path: str, port: int) -> str:
    return f"{machine}:{pid}:{path or port}"


def own_mark(settings: WebSettings) -> str:
    """Return the mark of the server that this process is.

    Args:
        settings: with the port that it has.
    """
    path = "" if settings.socket is None else str(settings.socket.absolute())
    return _mark(socket.gethostname(), os.getpid(), path, settings.port)


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


def running(state: Path, token: str) -> list[Instance]:
    """List the servers of this user that run on this machine, the newest first.

    Args:
        state: the state folder.
        token: the owner's, which they have shown to have.
    """
    found = [one for one in _known(state) if one.answers(token)]
    return sorted(found, key=lambda one: -one.started_at)


def _known(state: Path) -> list[Instance]:
    folder = state / _FOLDER
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    return [one for one in map(read, files) if one is not None]


def chosen(state: Path, port: int | None, path: Path | None, token: str) -> Instance:
    """Return the server that a command means: of a port or socket, else the newest.

    Args:
        state: the state folder.
        port: of the server; None: any.
        path: of its socket; None for one that has a port.
        token: the owner's.

    Raises:
        UserError: there is none.
    """
    proven = running(state, token)
    for one in proven:
        if path is not None and one.socket == str(path.absolute()):
            return one
        if path is None and port in (None, one.port):
            return one
    where = f" on port {port}" if port is not None else ""
    hint = "start it with: bequeath web"
    for one in _known(state):
        if one not in proven and one.lives():
            hint += (
                f"; what answers at {one.address} has not shown that it is yours: it is another "
                f"program, or process {one.pid} is a page of an older version: start it again"
            )
            break
    raise UserError(f"no page is served{where}", hint=hint)
