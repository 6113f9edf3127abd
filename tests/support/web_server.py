"""`bequeath web` as a process of its own, and requests to it as any client can write them."""

from __future__ import annotations

import http.client
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).parents[2]

#: A bound on a hang, not a measure of speed.
PATIENCE_S = 180.0


class Answered(NamedTuple):
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, which must be JSON."""
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        """The kind of the error."""
        return str(self.json()["error"]["kind"])


class Event(NamedTuple):
    """One event of a stream."""

    name: str
    data: Any
    ident: str


class WebServer:
    """A server that runs until :meth:`end`."""

    def __init__(self, home: Path, state: Path, *words: str, **environment: str) -> None:
        self.state = state
        self.environment = self.surroundings(home, state, **environment)
        port = () if {"--port", "--socket"} & set(words) else ("--port", "0")
        self.process = self.start("web", *port, *words)
        assert self.process.stdout is not None
        self.link = self.process.stdout.readline().strip()
        if not self.link:
            out, err = self.process.communicate(timeout=PATIENCE_S)
            raise AssertionError(f"{self.process.returncode}\n{out}\n{err}")
        parts = urlsplit(self.link)
        self.host, self.port = parts.hostname or "", parts.port or 80
        if "--behind-proxy" in words:  # links name the proxy
            (file,) = (state / "bequeath" / "web" / "servers").glob("*.json")
            self.host, self.port = "127.0.0.1", json.loads(file.read_text())["port"]
        self.token = (state / "bequeath" / "web" / "token").read_text().strip()
        self.log = state / "bequeath" / "web" / "logs" / "web.log"

    @staticmethod
    def surroundings(home: Path, state: Path, **environment: str) -> dict[str, str]:
        """The environment of commands over experiments and state of a test's own."""
        return {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "BEQUEATH_HOME": str(home),
            "XDG_STATE_HOME": str(state),
            **environment,
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [sys.executable, "-m", "dispatcher.cli", *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(self, *words: str, code: int = 0) -> str:
        """Run a command to its end; what it printed, or what it said if it is to fail."""
        process = self.start(*words)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code, f"{process.returncode}\n{out}\n{err}"
        return out.strip() if code == 0 else err.strip()

    def raw(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
    ) -> Answered:
        """Send a request with just these headers."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            data = body.encode() if isinstance(body, str) else body
            all_headers = {"Host": f"{self.host}:{self.port}", **(headers or {})}
            if data is not None and "Content-Length" not in all_headers:
                all_headers["Content-Length"] = str(len(data))
            for name, value in all_headers.items():
                if value:
                    connection.putheader(name, value)
            connection.endheaders(data)
            answer = connection.getresponse()
            return Answered(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def ask(
        self, method: str, path: str, body: Any = None, token: str = "", **headers: str
    ) -> Answered:
        """Ask below ``/api/v1`` as a script does."""
        all_headers = {"Authorization": f"Bearer {token or self.token}"}
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            all_headers.setdefault("Content-Type", "application/json")
        return self.raw(method, f"/api/v1{path}", all_headers, data)

    def get(self, path: str, **headers: str) -> Any:
        """The JSON at a path, which must be there."""
        answer = self.ask("GET", path, **headers)
        assert answer.status == 200, answer
        return answer.json()

    def cookie(self, link: str = "") -> str:
        """Sign in by a link, and return the cookie."""
        parts = urlsplit(link or self.link)
        answer = self.raw("GET", f"{parts.path}?{parts.query}")
        assert answer.status == 303, answer
        return answer.headers["Set-Cookie"].partition(";")[0]

    def stream(self, path: str, token: str = "", **headers: str) -> EventReader:
        """Open a stream of events below ``/api/v1``."""
        given = {"Authorization": f"Bearer {token or self.token}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        return EventReader(self.host, self.port, f"/api/v1{path}", given)

    def end(self) -> int:
        """Ask it to end, and return its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()  # nothing may be left, whatever the test found
            self.process.communicate()
            raise
        return self.process.returncode


class EventReader:
    """A stream of events, read by a thread of its own."""

    def __init__(self, host: str, port: int, path: str, headers: Mapping[str, str]) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
        self._connection.request("GET", path, headers=dict(headers))
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.headers = self._answer.headers
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._socket = self._connection.sock
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            for line in self._lines():
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                    continue
                if "event" in fields:
                    data = json.loads(fields["data"])
                    self._events.put(Event(fields["event"], data, fields.get("id", "")))
                fields = {}
        except (OSError, ValueError, http.client.HTTPException):
            pass
        self._events.put(None)

    def _lines(self) -> Iterator[str]:
        while line := self._answer.readline():
            yield line.decode().rstrip("\n")

    def next(self, name: str = "") -> Event:
        """The next event, of a name if one is given; the stream must have one."""
        while True:
            event = self._events.get(timeout=PATIENCE_S)
            assert event is not None, "the stream has ended"
            if name in ("", event.name):
                return event

    def rest(self) -> list[Event]:
        """All events until the stream ends, which it must."""
        found = []
        while (event := self._events.get(timeout=PATIENCE_S)) is not None:
            found.append(event)
        return found

    def close(self) -> None:
        """Break the connection."""
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._thread.join(PATIENCE_S)
        self._connection.close()
