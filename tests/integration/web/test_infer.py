"""Asking a model over the REST interface: by right, within bounds, not in the server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import psutil
import pytest

from tests.support.processes import end_processes_of, wait_until
from tests.support.trained import USUAL, TrainedSearch
from tests.support.web_server import WebServer


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainedSearch]:
    search = TrainedSearch(tmp_path_factory.mktemp("trained"))
    yield search
    end_processes_of(search.place)


@pytest.fixture
def server(search: TrainedSearch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    search.offer(USUAL)
    server = WebServer(search.place.parent, tmp_path_factory.mktemp("state"))
    yield server
    server.end()


def test_a_model_is_asked_by_who_may_change_things(
    search: TrainedSearch, server: WebServer
) -> None:
    """Mutation: the right to read, code in the server, a warm model that outlives it."""
    path = f"/experiments/{search.place.name}/trials/1/infer"
    share = json.loads(server.command("web", "--share", "friend", "--json"))["token"]
    offered = server.ask("GET", path, token=share)
    assert (offered.status, offered.json()["available"]) == (200, True)
    refused = server.ask("POST", path, {"request": {}}, token=share)
    assert (refused.status, refused.kind) == (403, "scope")
    told = server.ask("POST", path, {"request": {"x": [1.5]}})
    assert told.status == 200, told.body
    answer = told.json()["answer"]
    assert answer["w"] == [[1.0] * 3] * 4
    assert answer["request"] == {"x": [1.5]}
    assert answer["pid"] not in (server.process.pid, os.getpid())
    again = server.ask("POST", path, {"request": {}}).json()
    assert (again["answer"]["pid"], again["loaded_s"]) == (answer["pid"], 0.0)
    whats = [json.loads(line)["what"] for line in server.log.read_text().splitlines()]
    assert whats.count("infer") == 2
    server.end()
    wait_until(lambda: not psutil.pid_exists(answer["pid"]), "the model goes with the server")


@pytest.mark.parametrize(
    "body,status,part",
    [
        ({"request": []}, 400, "Expected `object`"),
        ({}, 400, "missing required field"),
        ({"request": {}, "timeout_s": 0}, 400, "> 0"),
        ({"request": {}, "timeout_s": 1e9}, 400, "<= 300"),
        ({"request": {}, "folder": "/etc"}, 400, "unknown field"),
        ({"request": {"x": "y" * (3 << 20)}}, 413, "2,097,152 bytes"),
    ],
)
def test_requests_are_bounded(
    search: TrainedSearch, server: WebServer, body: object, status: int, part: str
) -> None:
    path = f"/experiments/{search.place.name}/trials/1/infer"
    refused = server.ask("POST", path, body)
    assert refused.status == status
    assert part in refused.json()["error"]["message"]


def test_faults_have_their_status(search: TrainedSearch, server: WebServer) -> None:
    above = f"/experiments/{search.place.name}/trials"
    assert server.ask("POST", f"{above}/99/infer", {"request": {}}).status == 404
    assert server.ask("GET", f"{above}/99/infer").status == 404
    search.offer("\ndef infer(model, request):\n    os._exit(1)\n")
    died = server.ask("POST", f"{above}/1/infer", {"request": {}})
    assert (died.status, died.kind) == (400, "refused")
    assert "exit code 1" in died.json()["error"]["message"]
    search.offer("")
    offered = server.ask("GET", f"{above}/1/infer").json()
    assert (offered["available"], offered["inputs"]) == (False, None)
    assert "these trials have no demo" in offered["why"]
    assert server.raw("GET", "/healthz").status == 200


def test_a_server_that_is_killed_leaves_no_model(search: TrainedSearch, server: WebServer) -> None:
    path = f"/experiments/{search.place.name}/trials/2/infer"
    pid = server.ask("POST", path, {"request": {}}).json()["answer"]["pid"]
    assert psutil.pid_exists(pid)
    server.process.kill()
    server.process.wait()
    wait_until(lambda: not psutil.pid_exists(pid), "it has ended")
