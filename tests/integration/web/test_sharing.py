"""Links that only read, made and taken back by the page; and a new token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.web.conftest import EXPERIMENT
from tests.support.web_server import WebServer

ONE = f"/experiments/{EXPERIMENT}"


@pytest.fixture
def own(home: Path, tmp_path: Path) -> Iterator[WebServer]:
    """A server with a state of its own."""
    server = WebServer(home, tmp_path / "state")
    yield server
    server.end()


def test_a_share_is_made_listed_and_taken_back(own: WebServer) -> None:
    """Mutation: a share that changes, a list with tokens, one that is only said to be revoked."""
    cookie = {"Cookie": own.cookie(), "X-Bequeath": "1", "Content-Type": "application/json"}

    def ask(method: str, path: str, body: Any = None) -> Any:
        text = None if body is None else json.dumps(body)
        return own.raw(method, f"/api/v1{path}", cookie, text)

    assert ask("GET", "/shares").json() == {"shares": []}
    made = ask("POST", "/shares", {"name": "ann", "days": 2, "logs": True})
    assert made.status == 200, made.body
    told = made.json()
    assert told["path"] == f"/login?share={told['token']}"
    (row,) = ask("GET", "/shares").json()["shares"]
    assert (row["share"], row["logs"], row["over"]) == ("ann", True, False)
    assert row["expires_at"] - row["created_at"] == pytest.approx(2 * 86_400)
    assert told["token"].encode() not in ask("GET", "/shares").body
    reader = own.cookie(told["path"])
    assert own.raw("GET", f"/api/v1{ONE}", {"Cookie": reader}).status == 200
    refused = own.raw("POST", "/api/v1/shares", {**cookie, "Cookie": reader}, '{"name": "bob"}')
    assert (refused.status, refused.kind) == (403, "scope")
    again = ask("POST", "/shares", {"name": "ann"})
    assert (again.status, "already" in again.json()["error"]["message"]) == (400, True)
    assert "ann" in own.command("web", "--shares")
    assert ask("DELETE", "/shares/ann").json() == {"share": "ann", "revoked": True}
    assert own.raw("GET", f"/api/v1{ONE}", {"Cookie": reader}).status == 401
    assert ask("DELETE", "/shares/ann").status == 400
    whats = [json.loads(line)["what"] for line in own.log.read_text().splitlines()]
    assert whats.count("share made") == whats.count("share revoked") == 1
    assert told["token"] not in own.log.read_text()


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "a b"}, {"name": "x", "days": 0}, {"name": "x", "days": 1e9},
     {"name": "x", "scope": "change"}, {"name": 3}, {"name": "y" * 61}],
    ids=str,
)  # fmt: skip
def test_what_is_no_share_is_refused(server: WebServer, body: Any) -> None:
    refused = server.ask("POST", "/shares", body)
    assert (refused.status, refused.kind) == (400, "refused"), refused.body


def test_a_new_token_signs_all_out_and_shares_stay(own: WebServer) -> None:
    cookie = own.cookie()
    share = own.ask("POST", "/shares", {"name": "ann"}).json()["token"]
    done = own.ask("POST", "/token", {})
    assert done.json() == {"renewed": True}
    assert own.token.encode() not in done.body
    assert own.raw("GET", f"/api/v1{ONE}", {"Cookie": cookie}).status == 401
    assert own.ask("GET", ONE).status == 401
    assert own.ask("GET", ONE, token=own.command("web", "--token")).status == 200
    assert own.ask("GET", ONE, token=share).status == 200
    assert own.command("web", "--link").startswith("http")
