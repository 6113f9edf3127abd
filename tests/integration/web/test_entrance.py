"""Who comes in: each rule alone keeps somebody out."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dispatcher.web.keys import Keys
from tests.integration.web.conftest import EXPERIMENT
from tests.support.web_server import WebServer

READ = f"/api/v1/experiments/{EXPERIMENT}"
PIN = f"{READ}/trials/3/pin"
LOG = f"{READ}/trials/3/log/stdout"
STREAM = f"{READ}/events"
ACCESS = "/api/v1/session"


class Case(NamedTuple):
    """One request, and the status that answers it. ``by``: who asks."""

    status: int
    method: str = "GET"
    path: str = READ
    by: str = "cookie"
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = ""

    def __str__(self) -> str:
        told = " ".join(f"{name}={value}" for name, value in self.headers)
        return f"{self.method} {self.path.rpartition('/')[2]} {self.by} {told} {self.status}"


OWN = ("X-Bequeath", "1")
SAME = ("Sec-Fetch-Site", "same-origin")
JSON = ("Content-Type", "application/json")
LINKED = (("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"))

CASES = [
    # Nobody, and tokens that are none.
    Case(401, by="nobody", kind="no-token"),
    Case(401, by="nobody", path=STREAM, kind="no-token"),
    Case(401, by="nobody", path="/assets/icon.svg", kind="no-token"),
    Case(401, by="nobody", path="/api/v1/openapi.json", kind="no-token"),
    Case(401, by="nobody", path="/metrics", kind="no-token"),
    Case(401, by="nobody", path="/"),
    Case(200, by="nobody", path="/healthz"),
    Case(401, by="wrong", kind="no-token"),
    Case(401, by="basic", kind="no-token"),
    Case(401, by="wrong cookie", kind="no-token"),
    Case(401, by="cookie of another port", kind="no-token"),
    Case(200, by="owner"),
    Case(200),
    Case(200, path="/"),
    # Hosts.
    Case(403, headers=(("Host", "evil.example"),), kind="host"),
    Case(403, headers=(("Host", "evil.example:80"),), by="owner", kind="host"),
    Case(403, headers=(("Host", "127.0.0.1.evil.example"),), kind="host"),
    Case(403, headers=(("Host", "[::1]anything"),), kind="host"),
    Case(403, headers=(("Host", "[::1].evil.example"),), kind="host"),
    Case(403, headers=(("Host", "[::1]:80.evil.example"),), kind="host"),
    Case(403, headers=(("Host", "localhost:evil.example"),), kind="host"),
    Case(403, headers=(("Host", "[localhost]"),), kind="host"),
    Case(403, path="/healthz", by="nobody", headers=(("Host", "evil.example"),), kind="host"),
    Case(403, path="/login", by="nobody", headers=(("Host", "evil.example"),), kind="host"),
    Case(403, path=STREAM, headers=(("Host", "evil.example"),), kind="host"),
    Case(200, headers=(("Host", "localhost"),)),
    Case(200, headers=(("Host", "LOCALHOST:1"),)),
    Case(200, headers=(("Host", "[::1]:80"),)),
    Case(200, headers=(("Host", "[::1]"),)),
    Case(200, headers=(("Host", "127.0.0.1:"),)),
    Case(200, headers=(("Host", "named.example:443"),)),
    # Pages of others, by what browsers say of themselves.
    Case(403, headers=(("Sec-Fetch-Site", "cross-site"),), kind="origin"),
    Case(403, headers=(("Sec-Fetch-Site", "same-site"),), kind="origin"),
    Case(403, path=STREAM, headers=(("Sec-Fetch-Site", "same-site"),), kind="origin"),
    Case(403, by="owner", headers=(("Sec-Fetch-Site", "cross-site"),), kind="origin"),
    Case(403, headers=(*LINKED, ("Sec-Fetch-Dest", "document")), kind="origin"),
    Case(200, path="/", headers=(*LINKED, ("Sec-Fetch-Dest", "document"))),
    Case(403, path="/", headers=(*LINKED, ("Sec-Fetch-Dest", "iframe")), kind="origin"),
    Case(200, headers=(SAME,)),
    Case(200, headers=(("Sec-Fetch-Site", "none"),)),
    # Origins.
    Case(403, headers=(("Origin", "http://evil.example"),), kind="origin"),
    Case(403, headers=(("Origin", "null"),), kind="origin"),
    Case(403, headers=(("Origin", "http://localhost:1"), ("Host", "localhost:2")), kind="origin"),
    Case(403, by="owner", headers=(("Origin", "http://evil.example"),), kind="origin"),
    Case(200, headers=(("Origin", "http://localhost:2"), ("Host", "localhost:2"))),
    Case(200, headers=(("Origin", "https://named.example"),)),
    Case(403, headers=(("Origin", "https://named.example:8443"),), kind="origin"),
    # Changes.
    Case(403, "PUT", PIN, headers=(JSON,), kind="origin"),
    Case(403, "PUT", PIN, headers=(JSON, ("X-Bequeath", "0")), kind="origin"),
    Case(403, "PUT", PIN, headers=(JSON, OWN, ("Sec-Fetch-Site", "none")), kind="origin"),
    Case(403, "PUT", PIN, headers=(JSON, OWN, ("Origin", "http://evil.example")), kind="origin"),
    Case(403, "DELETE", PIN, headers=(OWN, ("Sec-Fetch-Site", "cross-site")), kind="origin"),
    Case(403, "PUT", PIN, "owner", (JSON, ("Host", "evil.example")), "host"),
    Case(200, "PUT", PIN, headers=(JSON, OWN, SAME)),
    Case(200, "PUT", PIN, "owner", (JSON,)),
    Case(200, "DELETE", PIN, headers=(OWN,)),
    Case(401, "DELETE", PIN, "nobody", (OWN,), "no-token"),
    Case(415, "PUT", PIN, "owner", (("Content-Type", "text/plain"),), "media"),
    # Scopes.
    Case(200, by="reader"),
    Case(200, by="reader's cookie"),
    Case(403, "PUT", PIN, "reader", (JSON,), "scope"),
    Case(403, "PUT", PIN, "reader's cookie", (JSON, OWN), "scope"),
    Case(403, path=LOG, by="reader", kind="scope"),
    Case(403, path=f"{READ}/trials/3/files", by="reader", kind="scope"),
    Case(403, path=f"{READ}/trials/3/files/work/x", by="reader", kind="scope"),
    Case(200, path=LOG, by="reader with logs"),
    Case(403, "DELETE", PIN, "reader with logs", (), "scope"),
    Case(403, "POST", "/api/v1/links", "reader", (), "scope"),
    Case(403, "POST", "/api/v1/links", "cookie", (OWN,), "scope"),
    Case(200, path="/settings"),
    Case(200, path="/api/v1/shares"),
    Case(403, path="/api/v1/shares", by="reader", kind="scope"),
    Case(403, "POST", "/api/v1/shares", "reader", (JSON,), "scope"),
    Case(403, "POST", "/api/v1/shares", "reader's cookie", (JSON, OWN), "scope"),
    Case(403, "POST", "/api/v1/shares", headers=(JSON,), kind="origin"),
    Case(403, "DELETE", "/api/v1/shares/reader", "reader with logs", (), "scope"),
    Case(403, "DELETE", "/api/v1/shares/reader", kind="origin"),
    Case(403, "POST", "/api/v1/token", "reader's cookie", (JSON, OWN), "scope"),
    Case(403, "POST", "/api/v1/token", headers=(JSON,), kind="origin"),
    Case(401, by="revoked", kind="no-token"),
    Case(401, by="revoked cookie", kind="no-token"),
    Case(401, by="expired", kind="no-token"),
    Case(401, by="expired", path=STREAM, kind="no-token"),
    Case(401, by="expired cookie", kind="no-token"),
    Case(401, by="token of another user", kind="no-token"),
    # Methods.
    Case(405, "TRACE", by="owner", kind="method"),
    Case(405, "OPTIONS", by="owner", kind="method"),
    Case(405, "POST", "/", "owner", (JSON,), "method"),
    Case(405, "DELETE", "/api/v1/experiments", "owner", (), "method"),
]  # fmt: skip


@pytest.fixture(scope="module")
def server(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server that goes by a name of its own, too."""
    state = tmp_path_factory.mktemp("state")
    server = WebServer(home, state, "--allow-host", "named.example")
    yield server
    server.end()


@pytest.fixture(scope="module")
def ways(server: WebServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """By the names of those who ask, the headers that they send."""
    shares = {
        name: json.loads(server.command("web", "--share", name, *words, "--json"))
        for name, words in (
            ("reader", ()),
            ("logs", ("--with-logs",)),
            ("gone", ()),
            ("old", ()),
        )
    }
    cookies = {name: server.cookie(one["link"]) for name, one in shares.items()}
    cookie = server.cookie()
    theirs = tmp_path_factory.mktemp("theirs")
    server.command("web", "--revoke", "gone")
    _end(server.state / "bequeath" / "web" / "shares.json", "old")

    def bearer(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    return {
        "nobody": {},
        "owner": bearer(server.token),
        "cookie": {"Cookie": f"other=1; {cookie}"},
        "wrong": bearer("x" * 43),
        "basic": {"Authorization": f"Basic {server.token}"},
        "wrong cookie": {"Cookie": f"{cookie[:-1]}{'0' if cookie[-1] != '0' else '1'}"},
        "cookie of another port": {"Cookie": cookie.replace("bequeath-", "bequeath-1", 1)},
        "reader": bearer(shares["reader"]["token"]),
        "reader's cookie": {"Cookie": cookies["reader"]},
        "reader with logs": bearer(shares["logs"]["token"]),
        "revoked": bearer(shares["gone"]["token"]),
        "revoked cookie": {"Cookie": cookies["gone"]},
        "expired": bearer(shares["old"]["token"]),
        "expired cookie": {"Cookie": cookies["old"]},
        "token of another user": bearer(Keys(theirs / "web").token),
    }


def _end(shares: Path, name: str) -> None:
    """Have a share ended a second ago, as it does when its days are over."""
    told = json.loads(shares.read_bytes())
    told[name]["expires"] = time.time() - 1
    shares.write_text(json.dumps(told))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_rule_alone_keeps_somebody_out(
    case: Case, server: WebServer, ways: dict[str, dict[str, str]]
) -> None:
    """Mutation: any one check of `guard.refuse_strangers`, of a scope, or of the own header."""
    headers = ways[case.by] | dict(case.headers)
    body = "{}" if case.method in ("PUT", "POST") else None
    answer = server.raw(case.method, case.path, headers, body)
    assert answer.status == case.status, answer
    if case.kind:
        assert answer.kind == case.kind
        assert answer.json()["error"]["message"]
    assert answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_host_is_named_once(server: WebServer) -> None:
    bearer = {"Authorization": f"Bearer {server.token}"}
    assert server.raw("GET", READ, bearer | {"Host": ""}).status == 400


def test_a_link_counts_once(server: WebServer) -> None:
    link = server.command("web", "--link", "--port", str(server.port))
    path = link.partition(str(server.port))[2]
    assert server.raw("HEAD", path).status == 200  # as a preview asks
    first = server.raw("GET", path)
    cookie = first.headers["Set-Cookie"]
    assert (first.status, first.headers["Location"]) == (303, "./")
    for word in ("HttpOnly", "SameSite=strict", "Path=/", f"bequeath-{server.port}="):
        assert word in cookie
    second = server.raw("GET", path)
    assert second.status == 401
    assert "Set-Cookie" not in second.headers
    assert b"bequeath web --link" in second.body


def test_a_link_of_another_site_gets_its_cookie_by_a_page_of_ours(server: WebServer) -> None:
    """A browser keeps a strict cookie back as long as it goes by redirects from elsewhere."""
    link = server.command("web", "--link", "--port", str(server.port))
    linked = dict(LINKED) | {"Sec-Fetch-Dest": "document"}
    answer = server.raw("GET", link.partition(str(server.port))[2], linked)
    assert answer.status == 200
    assert b'http-equiv="refresh"' in answer.body
    assert "Set-Cookie" in answer.headers
    without = server.raw("GET", "/e/digits-abc123", linked)
    assert (without.status, b"refresh" in without.body) == (200, True)
    assert b"digits" not in without.body
    then = server.raw("GET", "/e/digits-abc123", {"Sec-Fetch-Site": "same-origin"})
    assert (then.status, b"refresh" in then.body) == (401, False)


def test_the_owners_token_is_no_link(server: WebServer) -> None:
    assert server.raw("GET", f"/login?share={server.token}").status == 401
    assert server.raw("GET", f"/login?once={server.token}").status == 401
    assert server.raw("GET", f"/api/v1/session?token={server.token}").status == 401


def test_a_session_says_who_one_is(server: WebServer, ways: dict[str, dict[str, str]]) -> None:
    mine = server.raw("GET", ACCESS, ways["cookie"]).json()
    assert (mine["scope"], mine["logs"]) == ("change", True)
    reader = server.raw("GET", ACCESS, ways["reader"]).json()
    assert (reader["scope"], reader["logs"], reader["user"]) == ("read", False, "reader")
    assert server.token not in json.dumps(mine)


def test_a_stream_ends_when_its_share_is_revoked(server: WebServer) -> None:
    token = json.loads(server.command("web", "--share", "short", "--json"))["token"]
    stream = server.stream(f"/experiments/{EXPERIMENT}/events", token=token)
    assert stream.next("changes").data["anew"]
    server.command("web", "--revoke", "short")
    stream.rest()
    stream.close()


def test_secrets_are_in_files_of_ours_alone_and_in_no_log(server: WebServer) -> None:
    server.ask("PUT", f"/experiments/{EXPERIMENT}/trials/3/pin", {"note": "kept"})
    server.raw("GET", READ, {"Host": "evil.example"})
    server.raw("GET", READ, {"Origin": "http://evil.example"})
    server.raw("GET", READ)
    folder = server.state / "bequeath" / "web"
    for path in folder.rglob("*"):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    log = server.log.read_text()
    assert server.token not in log
    assert server.link.partition("once=")[2] not in log
    kept = [json.loads(line) for line in log.splitlines()]
    pins = [one for one in kept if one["what"] == "weights-pin"]
    assert pins[-1]["who"] == "owner"
    assert pins[-1]["trial"] == "3"
    assert {"host", "origin", "no-token"} <= {one.get("kind") for one in kept}
    for name in ("cmdline", "environ"):
        assert server.token.encode() not in Path(f"/proc/{server.process.pid}/{name}").read_bytes()


def test_a_new_token_signs_all_out(server: WebServer, tmp_path: Path) -> None:
    other = WebServer(server.state / "none", tmp_path)
    try:
        cookie = other.cookie()
        assert other.raw("GET", ACCESS, {"Cookie": cookie}).status == 200
        other.end()
        again = WebServer(server.state / "none", tmp_path, "--port", str(other.port))
        try:  # it outlives a restart
            assert again.raw("GET", ACCESS, {"Cookie": cookie}).status == 200
        finally:
            again.end()
        third = WebServer(server.state / "none", tmp_path, "--port", str(other.port))
        try:
            unused = third.link
            other.command("web", "--new-token")
            assert third.raw("GET", ACCESS, {"Cookie": cookie}).status == 401
            assert third.ask("GET", "/session", token=other.token).status == 401
            assert "login?once=" in third.command("web", "--link")
            assert third.raw("GET", f"/login?{unused.partition('?')[2]}").status == 401
        finally:
            third.end()
    finally:
        other.end()
