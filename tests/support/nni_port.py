"""NNI's REST of an experiment, asked as scripts ask it, at a port of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.web_server import PATIENCE_S, WebServer

API = "/api/v1/nni"


class NniPort(WebServer):
    """``bequeath nni serve``, until :meth:`end`; or a port that another command has opened."""

    def __init__(self, home: Path, state: Path, *words: str, **environment: str) -> None:
        self.state = state
        self.environment = self.surroundings(home, state, **environment)
        self.process = self.start("nni", "serve", *words)
        assert self.process.stdout is not None
        link = self.process.stdout.readline().strip()
        if not link:
            out, err = self.process.communicate(timeout=PATIENCE_S)
            raise AssertionError(f"{self.process.returncode}\n{out}\n{err}")
        self._is_at(link)

    @classmethod
    def at(cls, link: str) -> NniPort:
        """One that is open already, by the link to it."""
        one = cls.__new__(cls)
        one._is_at(link)
        return one

    def _is_at(self, link: str) -> None:
        parts = urlsplit(link)
        self.link, self.prefix = link, parts.path.rstrip("/")
        self.host, self.port = parts.hostname or "", parts.port or 80

    def json(self, path: str, method: str = "GET", body: str | None = None) -> Any:
        """The JSON at a path of NNI's REST; None for an empty answer."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        answer = self.raw(method, f"{self.prefix}{API}{path}", headers, body)
        assert answer.status == 200, answer
        return answer.json() if answer.body else None

    @property
    def is_open(self) -> bool:
        """Whether it answers."""
        try:
            return self.raw("GET", f"{self.prefix}{API}/version").status == 200
        except OSError:
            return False

    def ends_by_itself(self) -> int:
        """Wait for its end, and return its exit code."""
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


def printed_link(process: subprocess.Popen[str], beginning: str) -> str:
    """The link in the first line of stderr that begins so."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(beginning):
            return line.removeprefix(beginning).strip()
    raise AssertionError(f"no line begins with {beginning!r}")
