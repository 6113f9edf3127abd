"""The page behind real proxies, configured as docs/web.md says, in a real browser."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.conftest import Place, place
from tests.support import proxies
from tests.support.browser import Browser
from tests.support.ports import free_port
from tests.support.web_server import WebServer

__all__ = ["place"]

pytestmark = pytest.mark.needs("chromium")

#: The guide's words, less what the page itself asks of proxies, and with the path taken off.
BARE = """\
location /bequeath/ {
    proxy_pass http://127.0.0.1:8077/;
    proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-Proto $scheme;
}"""

#: Seconds within which the first events come. A proxy that keeps them back has them until its
#: buffer is full, which a stream as quiet as this one never does.
_SOON_S = 10.0


@pytest.fixture
def running(place: Place) -> str:
    """The name of an experiment of which two trials run."""
    place("create", "experiment.yml")
    place.wait_until_running()
    return place.experiment.name


@pytest.fixture
def outside(pictures: Path) -> Iterator[Browser]:
    """A browser that knows the proxy by its name, and nobody beside it."""
    browser = Browser(pictures, proxies.NAME)
    yield browser
    strangers = browser.strangers()
    browser.close()
    assert strangers == set()


def changed_by_click(browser: Browser, place: Place, slots: int) -> None:
    """Change a limit in the page, as a person does, and see that the stream tells of it."""
    browser.click("limits…")
    browser.one("dialog input").send_keys(str(slots))
    browser.click("change", "dialog button[type=submit]")
    browser.until(lambda: browser.all("dialog .done"), "the limit is changed")
    browser.click("close", "dialog button")
    browser.waits_for(f"of {slots} slots busy", limit_s=_SOON_S)


def demand_soon(line: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> None:
    """Have what a trial wrote come through at once: a few bytes, after which the stream is quiet,
    so that a proxy that waits for a buffer to be full keeps them."""
    with closing(line):
        began = time.monotonic()
        line.request("GET", f"{path}/trials/0/log/stdout?follow=1", headers=headers)
        answer = line.getresponse()
        assert answer.status == 200
        while "trial 0" not in (told := answer.readline().decode()):
            assert told
        assert time.monotonic() - began < _SOON_S


class Line(http.client.HTTPSConnection):
    """A connection to the proxy by its name, which is this machine's for the test alone."""

    def __init__(self, port: int, cert: Path) -> None:
        context = ssl.create_default_context(cafile=str(cert))
        super().__init__(proxies.NAME, port, timeout=20, context=context)
        raw = socket.create_connection(("127.0.0.1", port), 60)
        self.sock = context.wrap_socket(raw, server_hostname=proxies.NAME)


def ask(
    line: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    """Status and JSON of an answer, after which the connection is closed."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    text = None
    if body is not None:
        given.setdefault("Content-Type", "application/json")
        text = json.dumps(body)
    with closing(line):
        line.request(method, path, text, given)
        answer = line.getresponse()
        told = answer.read()
    kind = answer.headers.get("Content-Type", "")
    return answer.status, json.loads(told) if kind.startswith("application/json") else told


@pytest.mark.parametrize("location", ["", BARE], ids=["as in the guide", "bare, path taken off"])
def test_nginx(outside: Browser, place: Place, running: str, tmp_path: Path, location: str) -> None:
    proxies.demand_nginx()
    port = free_port()
    words = proxies.words_of("--prefix /bequeath", proxy=port)
    server = WebServer(place.kept, place.folder / "state", *words)
    base = f"https://{proxies.NAME}:{port}/bequeath"
    try:
        assert server.link.startswith(f"{base}/login?once=")
        with proxies.nginx(tmp_path / "nginx", port, server.port, location) as cert:
            outside.open(server.link)
            outside.waits_for(running)
            assert outside.driver.current_url == f"{base}/"
            (cookie,) = outside.driver.get_cookies()
            assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (
                True, True, "Strict", "/bequeath",
            )  # fmt: skip
            outside.open(f"{base}/e/{running}")
            outside.waits_for("2 running")
            changed_by_click(outside, place, 3)
            outside.waits_for("live")
            assert "asking" not in outside.text("header")
            assert outside.faults() == []
            outside.driver.get("about:blank")

            path = f"/bequeath/api/v1/experiments/{running}"
            owner = {"Authorization": f"Bearer {server.token}"}
            demand_soon(Line(port, cert), path, owner)

            # Who may change something is decided by the address that the browser shows.
            wish = {"key": "trialConcurrency", "value": 4}
            mine = {"Cookie": f"{cookie['name']}={cookie['value']}", "X_Bequeath": "1"}
            own = f"https://{proxies.NAME}:{port}"
            for origin, status in (
                ("https://evil.example", 403),
                (f"https://{proxies.NAME}", 403),  # another port is another site
                (f"http://{proxies.NAME}:{port + 1}", 403),
                (own, 200),
            ):
                line = Line(port, cert)
                assert ask(line, "PATCH", path, wish, Origin=origin, **mine)[0] == status, origin
            status, told = ask(Line(port, cert), "GET", path, Host="other.example", **mine)
            assert (status, told["error"]["kind"]) == (403, "host")
    finally:
        assert server.end() == 0


def test_jupyter_server_proxy(browser: Browser, place: Place, running: str, tmp_path: Path) -> None:
    page, port, token = free_port(), free_port(), "jupyter-token"
    words = proxies.words_of("--prefix /proxy", page=page, jupyter=port)
    words = [word.replace("localhost", "127.0.0.1") for word in words]  # as the browser is told
    server = WebServer(place.kept, place.folder / "state", "--port", str(page), *words)
    base = f"http://127.0.0.1:{port}/proxy/{page}"
    once = server.link.partition(f"/proxy/{page}")[2]
    try:
        with proxies.jupyter(tmp_path / "jupyter", port, token):
            browser.open(f"http://127.0.0.1:{port}/api/status?token={token}")  # signs in to Jupyter
            browser.waits_for("started")
            browser.open(base + once)
            browser.waits_for(running)
            assert browser.driver.current_url == f"{base}/"
            browser.open(f"{base}/e/{running}")
            browser.waits_for("2 running")
            changed_by_click(browser, place, 3)
            browser.waits_for("live")
            assert "asking" not in browser.text("header")
            assert browser.faults() == []
            kept = browser.driver.get_cookies()
            browser.driver.get("about:blank")

            mine = "; ".join(f"{one['name']}={one['value']}" for one in kept)
            path = f"/proxy/{page}/api/v1/experiments/{running}"
            head = {"Cookie": mine, "Accept": "text/event-stream"}
            demand_soon(http.client.HTTPConnection("127.0.0.1", port, timeout=20), path, head)
            wish = {"key": "trialConcurrency", "value": 4}
            for origin, status in ((f"http://127.0.0.1:{port + 1}", 403),
                                   (f"http://127.0.0.1:{port}", 200)):  # fmt: skip
                line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                given = {"Cookie": mine, "X_Bequeath": "1", "Origin": origin}
                assert ask(line, "PATCH", path, wish, **given)[0] == status, origin
            # Signed in to Jupyter is not signed in to the page.
            others = "; ".join(
                f"{one['name']}={one['value']}" for one in kept if "bequeath" not in one["name"]
            )
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            assert ask(line, "GET", path, Cookie=others)[0] == 401
    finally:
        assert server.end() == 0
