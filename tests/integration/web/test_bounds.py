"""Nonsense, floods and those who read slowly: each gets a clear answer, and nobody else notices."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.web.conftest import EXPERIMENT, laid_down
from tests.support.processes import wait_until
from tests.support.web_server import WebServer

ONE = f"/experiments/{EXPERIMENT}"
PIN = f"{ONE}/trials/3/pin"
JSON = {"Content_Type": "application/json"}


@pytest.mark.parametrize(
    "body,status,kind",
    [
        (b"{", 400, "request"),
        (b"[]", 400, "request"),
        (b'"x"', 400, "request"),
        (b'{"note": NaN}', 400, "request"),
        (b"\xff\xfe", 400, "request"),
        (b'{"note": 3}', 400, "refused"),
        (b'{"other": "x"}', 400, "refused"),
        (b'{"note": "' + b"x" * 2_001 + b'"}', 400, "refused"),
        (b'{"note": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, ""),
        (b"x" * ((2 << 20) + 1), 413, "too-large"),
    ],
    ids=lambda one: repr(one)[:30],
)
def test_bad_bodies_are_refused(server: WebServer, body: bytes, status: int, kind: str) -> None:
    answer = server.ask("PUT", PIN, body, **JSON)
    assert answer.status == status, answer
    assert kind in ("", answer.kind)
    assert server.get(f"{ONE}/trials/3")["trial"]["id"] == 3


def test_a_body_that_says_nothing_of_its_length_is_bounded(server: WebServer) -> None:
    """Sent in pieces, it is refused before all of it has come."""
    with socket.create_connection((server.host, server.port), timeout=60) as line:
        head = (
            f"PUT /api/v1{PIN} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n\r\n"
        )
        line.sendall(head.encode())
        piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            for _ in range(200):
                line.sendall(piece)
        except OSError:
            pass  # the server has answered and let go
        assert b" 413 " in line.recv(100)


@pytest.mark.parametrize(
    "path,kind",
    [
        (f"{ONE}/trials?where=lr%3C%3C", "condition"),
        (f"{ONE}/trials?where=" + "(" * 1_000, "condition"),
        (f"{ONE}/trials?limit=nan", "refused"),
        (f"{ONE}/trials?limit=-1", "refused"),
        (f"{ONE}/trials?limit=" + "9" * 400, "refused"),
        (f"{ONE}/trials?parent=99999999999999999999", "refused"),
        (f"{ONE}/trials?limit=1&limit=2", "request"),
        (f"{ONE}/trials?nothing=1", "refused"),
        (f"{ONE}/trials?sort=%3Cimg%3E", "refused"),
        (f"{ONE}/changes?wait=1e999", "refused"),
        (f"{ONE}/changes?wait=61", "refused"),
        (f"{ONE}/curves?trials=", "refused"),
        (f"{ONE}/curves?trials=1,x", "refused"),
        (f"{ONE}/curves?trials=" + ",".join(map(str, range(300))), "refused"),
        (f"{ONE}/curves?trials=1&metric=%22%27", "refused"),
        (f"{ONE}/curves?trials=1&points=1", "refused"),
        (f"{ONE}/trials/3/log/stdout?from=x", "refused"),
        (f"{ONE}/trials/3/log/stdout?limit=99999999", "refused"),
        (f"{ONE}/trials/3/files/..%2F..%2Fexperiment.json", "refused"),
        (f"{ONE}/trials/3/files/experiment.json", "refused"),
        (f"{ONE}/pictures/nonsense", "refused"),
    ],
)  # fmt: skip
def test_bad_questions_are_refused(server: WebServer, path: str, kind: str) -> None:
    answer = server.ask("GET", path)
    assert (answer.status, answer.kind) == (400, kind), answer


@pytest.mark.parametrize(
    "path,status,kind",
    [
        ("/experiments/none", 404, "no-experiment"),
        ("/experiments/%2Fetc", 404, "no-page"),
        ("/experiments/..", 404, "no-experiment"),
        (f"{ONE}/trials/999", 404, "no-trial"),
        (f"{ONE}/trials/x", 404, "no-trial"),
        (f"{ONE}/trials/{'9' * 30}", 404, "no-trial"),
        (f"{ONE}/trials/999/metrics", 404, "no-trial"),
        (f"{ONE}/trials/999/log/stdout", 404, "no-trial"),
        (f"{ONE}/trials/3/log/stdin", 404, "no-page"),
        (f"{ONE}/trials/3/files/work/none", 404, "no-page"),
        (f"{ONE}/trials?limit=10001", 413, "too-large"),
    ],
)
def test_what_is_not_there(server: WebServer, path: str, status: int, kind: str) -> None:
    answer = server.ask("GET", path)
    assert (answer.status, answer.kind) == (status, kind), answer


def test_a_change_names_the_whole_id(server: WebServer) -> None:
    assert server.ask("GET", "/experiments/digits").status == 200  # a beginning, to look at
    answer = server.ask("DELETE", "/experiments/digits")
    assert (answer.status, answer.kind) == (404, "no-experiment")
    assert server.ask("GET", ONE).status == 200


def test_a_change_does_not_wait(server: WebServer) -> None:
    """Mutation: a few who wait keep everybody from changing anything."""
    answer = server.ask("POST", f"{ONE}/stop", {"wait": True})
    assert (answer.status, answer.kind) == (400, "request")
    assert server.ask("POST", f"{ONE}/stop", {}).status == 503  # nothing runs


def test_headers_are_bounded(server: WebServer) -> None:
    assert server.raw("GET", "/healthz", {"X-Long": "x" * 100_000}).status in (400, 413)
    assert server.raw("GET", "/healthz", {"X-Long": "x" * 40_000}).status in (400, 413)
    assert server.raw("GET", "/healthz", {"X-Long": "x" * 20_000}).status == 200


def test_numbers_that_json_does_not_have_are_null(home: Path, server: WebServer) -> None:
    folder = laid_down(home, 3, "odd-1")
    from contextlib import closing

    from dispatcher.store import SqliteJournal
    from tests.unit.store.life import Life

    ident = "odd-2"
    other = laid_down(home, 1, ident)
    (other / "journal.sqlite").unlink()
    with closing(SqliteJournal.open(other / "journal.sqlite", epoch=1)) as journal:
        life = Life(journal)
        life.begin()
        odd = {
            "big": 10**30, "text": "<img src=x onerror=alert(1)>\u202e", "long": "x" * 5_000_000,
            "state": 1, "deep": {"er": [1, 2]}, "nothing": None, "yes": True,
        }  # fmt: skip
        life.propose(0, None, json.dumps(odd))
        life.run(0, "NaN")
        life.deliver(0)
        table = server.get(f"/experiments/{ident}/table")
    cells = {each["name"]: each for each in table["columns"]}
    assert cells["value"]["values"][0] is None
    assert cells["big"]["choices"] == [str(10**30)]
    assert len(cells["long"]["choices"][0]) == 200
    assert cells["text"]["choices"] == [odd["text"]]
    assert cells["parameters.state"]["values"][0] == 1
    assert cells["deep.er"]["choices"] == ["[1,2]"]
    assert cells["yes"]["choices"] == ["true"]
    for path in ("", "/trials/0", "/trials", "/lineage", "/changes"):
        assert server.ask("GET", f"/experiments/{ident}{path}").status == 200, path
    assert folder.is_dir()


def test_a_folder_of_somebody_else_is_refused(home: Path, server: WebServer) -> None:
    import os

    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    folder = laid_down(home, 2, "theirs-1")
    for path in (folder, *folder.iterdir()):
        os.chown(path, 65534, 65534)
    for path in ("", "/table", "/events", "/trials/0/log/stdout"):
        answer = server.ask("GET", f"/experiments/theirs-1{path}")
        assert (answer.status, answer.kind) == (403, "not-ours"), path
    listed = server.get("/experiments")
    assert "theirs-1" not in {one["id"] for one in listed["experiments"]}
    assert listed["others"] == 1


@pytest.fixture
def own(home: Path, tmp_path: Path) -> Iterator[WebServer]:
    """A server that a test may flood."""
    server = WebServer(home, tmp_path / "state")
    yield server
    server.end()


def test_a_thousand_connections_harm_nobody_for_long(own: WebServer) -> None:
    """Mutation: connections that ask nothing are kept."""
    with ExitStack() as stack:
        lines = [
            stack.enter_context(socket.create_connection((own.host, own.port), timeout=60))
            for _ in range(1_000)
        ]
        answer = own.raw("GET", "/healthz")
        assert answer.status == 503  # a clear answer
        for line in lines:
            assert line.recv(1) == b""  # closed by the server
    assert own.raw("GET", "/healthz").status == 200


def test_guesses_are_slowed_and_the_owner_is_not(own: WebServer) -> None:
    """Mutation: tokens can be guessed as fast as one can ask."""
    statuses = [own.ask("GET", "/session", token=f"guess{n}").status for n in range(103)]
    assert statuses[:100] == [401] * 100
    assert statuses[100:] == [429] * 3
    assert own.ask("GET", "/session").status == 200


def test_streams_are_counted(own: WebServer) -> None:
    """Mutation: no bound on streams, or one that is not given back."""
    streams = [own.stream(f"{ONE}/events") for _ in range(100)]
    answer = own.ask("GET", f"{ONE}/events")
    assert (answer.status, answer.kind) == (429, "too-many")
    assert answer.headers["Retry-After"]
    assert own.get(f"{ONE}/trials/3")["trial"]["id"] == 3
    for stream in streams:
        stream.close()

    def is_taken() -> bool:
        stream = own.stream(f"{ONE}/events")
        stream.close()
        return stream.status == 200

    wait_until(is_taken, "there is room again")


def test_one_who_reads_nothing_is_dropped(own: WebServer, home: Path) -> None:
    """Mutation: a buffer that stays full is kept for ever."""
    folder = home / EXPERIMENT
    output = folder / "trials" / "3" / "1" / "stdout"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(b"x" * (30 << 20))  # one line of it
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        line.settimeout(120)
        line.connect((own.host, own.port))
        path = f"/api/v1{ONE}/trials/3/log/stdout?follow=1"
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {own.token}"
        line.sendall(f"{head}\r\n\r\n".encode())

        def is_dropped() -> bool:
            return own.get("/session") and _streams(own) == 0

        wait_until(lambda: _streams(own) == 1, "the stream is open")
        wait_until(is_dropped, "the stream is dropped")
    output.unlink()


def _streams(server: WebServer) -> int:
    text = server.raw("GET", "/metrics", {"Authorization": f"Bearer {server.token}"}).body.decode()
    line = next(one for one in text.splitlines() if one.startswith("bequeath_web_streams "))
    return int(line.rpartition(" ")[2])
