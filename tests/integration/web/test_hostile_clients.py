"""Clients that mean harm, or know no better: what they do harms themselves only."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.store import SqliteJournal
from dispatcher.web.work import FOLLOW_THREADS
from tests.integration.web.conftest import EXPERIMENT, laid_down
from tests.support.web_server import PATIENCE_S, EventReader, WebServer
from tests.unit.store.life import Life

ONE = f"/experiments/{EXPERIMENT}"
SESSION = "/api/v1/session"


@pytest.fixture
def own(home: Path, tmp_path: Path) -> Iterator[WebServer]:
    """A server that a test may treat badly."""
    server = WebServer(home, tmp_path / "state")
    yield server
    server.end()


@pytest.fixture
def growing(home: Path) -> Iterator[Path]:
    """The output of a trial that is not over."""
    folder = laid_down(home, 1, "growing-1")
    (folder / "journal.sqlite").unlink()
    with closing(SqliteJournal.open(folder / "journal.sqlite", epoch=1)) as journal:
        life = Life(journal)
        life.begin()
        life.propose(0, None, '{"x": 1}')
        life.say(e.AttemptStarted(TrialId(0), 1, os.getpid()))
    output = folder / "trials" / "0" / "1" / "stdout"
    output.parent.mkdir(parents=True)
    output.write_text("first\n")
    yield output
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "other",
    ['a={"x":1}', "x[0]=1", 'theme="', "a=b c", "\xc3\xa9=1", "a=1,2", "word", "=v", "a@b=1"],
)
def test_cookies_of_others_on_this_machine_hide_none_of_ours(server: WebServer, other: str) -> None:
    """Browsers send cookies of all ports. Mutation: a parser that gives up at the first odd one."""
    link = server.command("web", "--link", "--port", str(server.port))
    cookie = server.cookie(link)
    name = cookie.partition("=")[0]
    for given in (f"{other}; {cookie}", f"{cookie}; {other}", f"{name}=forged; {cookie}"):
        assert server.raw("GET", SESSION, {"Cookie": given}).status == 200, given
    assert server.raw("GET", SESSION, {"Cookie": other}).status == 401


def test_what_a_proxy_asks_people_for_does_not_keep_them_out(server: WebServer) -> None:
    """Behind `auth_basic` each request has an Authorization that is nothing to us."""
    cookie = server.cookie(server.command("web", "--link", "--port", str(server.port)))
    basic = {"Authorization": "Basic YWxpY2U6c2VjcmV0"}
    assert server.raw("GET", SESSION, {"Cookie": cookie, **basic}).status == 200
    assert server.raw("GET", SESSION, basic).status == 401
    wrong = {"Cookie": cookie, "Authorization": "Bearer wrong"}
    assert server.raw("GET", SESSION, wrong).status == 401


def test_a_share_that_is_revoked_hears_no_more_of_an_output(own: WebServer, growing: Path) -> None:
    """Mutation: who follows a log is asked for the token once."""
    share = own.command("web", "--share", "short", "--with-logs", "--json")
    token = json.loads(share)["token"]
    stream = own.stream("/experiments/growing-1/trials/0/log/stdout?follow=1", token=token)
    assert stream.next("text").data["text"] == "first\n"
    own.command("web", "--revoke", "short")
    began = time.monotonic()
    assert stream.rest() == []
    assert time.monotonic() - began < 10  # and not at the next heartbeat but five
    stream.close()


def test_an_answer_that_waits_ends_with_its_share(own: WebServer) -> None:
    token = json.loads(own.command("web", "--share", "short", "--json"))["token"]
    cursor = own.get(f"{ONE}/changes")["cursor"]
    connection = http.client.HTTPConnection(own.host, own.port, timeout=PATIENCE_S)
    path = f"/api/v1{ONE}/changes?after={cursor}&wait=50"
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    own.command("web", "--revoke", "short")
    began = time.monotonic()
    assert connection.getresponse().status == 401
    assert time.monotonic() - began < 20
    connection.close()


def test_those_who_follow_logs_keep_nobody_from_reading_one(own: WebServer, growing: Path) -> None:
    """Mutation: one pool of threads for both."""
    path = "/experiments/growing-1/trials/0/log/stdout"
    streams: list[EventReader] = []
    try:
        for _ in range(FOLLOW_THREADS):
            streams.append(own.stream(f"{path}?follow=1"))
            assert streams[-1].next("text")
        refused = own.ask("GET", f"{path}?follow=1")
        assert (refused.status, refused.kind) == (429, "too-many")
        assert own.ask("GET", path).body == b"first\n"
    finally:
        for stream in streams:
            stream.close()


def test_a_head_reads_no_file_and_holds_no_stream(own: WebServer, home: Path) -> None:
    """Mutation: all of a sparse terabyte is read for nobody."""
    work = home / EXPERIMENT / "trials" / "5" / "1" / "work"
    work.mkdir(parents=True, exist_ok=True)
    with open(work / "sparse", "wb") as file:
        file.truncate(1 << 40)
    connection = http.client.HTTPConnection(own.host, own.port, timeout=PATIENCE_S)
    path = f"/api/v1{ONE}/trials/5/files/work/sparse"
    connection.request("HEAD", path, headers={"Authorization": f"Bearer {own.token}"})
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Length"]) == (200, str(1 << 40))
    answer.read()
    connection.request("GET", "/healthz")  # answered when nothing is read any more
    assert connection.getresponse().status == 200
    connection.close()
    for path in (f"{ONE}/events", f"{ONE}/trials/5/log/stdout?follow=1"):
        refused = own.ask("HEAD", path)
        assert (refused.status, refused.headers["Allow"]) == (405, "GET")
    metrics = own.raw("GET", "/metrics", {"Authorization": f"Bearer {own.token}"})
    assert b"bequeath_web_streams 0" in metrics.body


def test_a_look_at_many_experiments_keeps_nobody_from_the_next(
    tmp_path: Path,
) -> None:
    """Mutation: whoever has looked at 64 lets nobody look at another one for a minute."""
    home = tmp_path / "home"
    first = laid_down(home, 1, "many-0")
    for number in range(1, 70):
        shutil.copytree(first, home / f"many-{number}")
    server = WebServer(home, tmp_path / "state")
    try:
        followed = server.stream("/experiments/many-0/events")
        followed.next("changes")
        answers = [server.ask("GET", f"/experiments/many-{n}").status for n in range(1, 70)]
        assert set(answers) == {200}
        followed.close()
    finally:
        server.end()


def test_strangers_do_not_push_changes_out_of_the_log(own: WebServer) -> None:
    """Mutation: a line for each try, until the file is turned over."""
    for number in range(200):
        assert own.raw("GET", f"/login?once=guess{number}").status == 401
        with socket.create_connection((own.host, own.port), timeout=PATIENCE_S) as line:
            line.sendall(b"nonsense\r\n\r\n")
            assert line.recv(12) == b"HTTP/1.1 400"
    own.ask("PUT", f"{ONE}/trials/3/pin", {"note": "kept"})
    lines = [json.loads(line) for line in own.log.read_text().splitlines()]
    told = [one["what"] for one in lines]
    assert 1 <= told.count("sign-in refused") <= 120  # a minute may end meanwhile
    assert 1 <= told.count("fault") <= 120
    assert told[-1] == "weights-pin"


def test_an_empty_range_is_none(server: WebServer, home: Path) -> None:
    output = home / EXPERIMENT / "trials" / "7" / "1" / "stdout"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("0123456789")
    path = f"{ONE}/trials/7/log/stdout"
    assert server.ask("GET", path, Range="bytes=-0").status == 416
    assert server.ask("GET", path, Range="bytes=-3").body == b"789"
