"""A port that a page had, and another program has now: nobody there gets a token."""

from __future__ import annotations

import http.client
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dispatcher.cli.exit_codes import ExitCode
from tests.support.web_server import WebServer


class Stranger(ThreadingHTTPServer):
    """Another program at a port: keeps all that it is asked, and answers what it likes to.

    Args:
        ask: the port of a page to which it passes questions on; None: it says that it is well.
    """

    def __init__(self, ask: int | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.ask = ask
        self.heard: list[str] = []
        self.port: int = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def body(self, path: str) -> bytes:
        """The answer to a question."""
        if self.ask is None:
            return b"ok\n"
        line = http.client.HTTPConnection("127.0.0.1", self.ask, timeout=60)
        line.request("GET", path)
        body = line.getresponse().read()
        line.close()
        return body


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stranger

    def do_GET(self) -> None:
        self.server.heard.append(f"{self.requestline}\n{self.headers}")
        body = self.server.body(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def own(home: Path, tmp_path: Path) -> Iterator[WebServer]:
    """A page with a state of its own."""
    server = WebServer(home, tmp_path / "state")
    yield server
    server.end()


def recorded(page: WebServer, stranger: Stranger, pid: int) -> None:
    """Write the stranger's port down as that of a page."""
    folder = page.state / "bequeath" / "web" / "servers"
    known = json.loads((folder / f"{page.port}.json").read_text())
    known |= {"port": stranger.port, "pid": pid}
    (folder / f"{stranger.port}.json").write_text(json.dumps(known))


def test_who_has_the_port_of_one_that_was_killed_gets_no_token(own: WebServer) -> None:
    """Mutation: whatever answers at a port that is written down is a page of ours."""
    stranger = Stranger()
    recorded(own, stranger, os.getpid())
    own.end()
    try:
        refused = own.command("web", "--link", code=ExitCode.USER)
        assert "no page is served" in refused
        assert f"127.0.0.1:{stranger.port} has not shown that it is yours" in refused
        shared = own.command("web", "--share", "friend")
        assert f":{stranger.port}" not in shared
        again = own.command("web", "--port", str(stranger.port), code=ExitCode.USER)
        assert "another program has port" in again
        assert stranger.heard
        assert own.token not in "".join(stranger.heard)
    finally:
        stranger.shutdown()
        stranger.server_close()


def test_who_passes_the_question_on_to_a_page_gets_no_token(own: WebServer) -> None:
    """Mutation: the answer does not say which page it is of."""
    stranger = Stranger(own.port)
    recorded(own, stranger, own.process.pid)
    try:
        words = ("web", "--link", "--port")
        refused = own.command(*words, str(stranger.port), code=ExitCode.USER)
        assert f"no page is served on port {stranger.port}" in refused
        assert any("challenge=" in one for one in stranger.heard)
        assert own.token not in "".join(stranger.heard)
        assert f":{own.port}/login?once=" in own.command(*words, str(own.port))
    finally:
        stranger.shutdown()
        stranger.server_close()


def test_the_answer_to_a_challenge_says_nothing_of_the_token(own: WebServer) -> None:
    """Mutation: it is the same for each, or the token itself."""
    bodies = {own.raw("GET", f"/healthz?challenge={one}").body for one in ("a", "b", "c" * 90)}
    assert len(bodies) == 3
    assert not any(own.token.encode() in one for one in bodies)
    assert own.raw("GET", "/healthz").body == b"ok\n"
