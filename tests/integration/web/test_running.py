"""A real experiment under the page: its head, its trials' outputs, and changes while it runs."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.control.client import RunFile
from tests.integration.cli.conftest import Place, place
from tests.support.processes import wait_until
from tests.support.web_server import Answered, WebServer

__all__ = ["place"]

SUBMITTED = {"parameters": {"n": 100}}


@pytest.fixture
def server(place: Place) -> Iterator[WebServer]:
    """A server over an experiment of which two trials run."""
    place("create", "experiment.yml")
    place.wait_until_running()
    server = WebServer(place.kept, place.folder / "state")
    yield server
    server.end()


#: A line of Prometheus's text format, as far as ours goes: a type, or a sample with its labels.
_LABEL = r'[a-z]+="[^"\\]*"'
EXPOSED = re.compile(
    r"# TYPE (?P<typed>[a-z_]+) (gauge|counter)"
    rf"|(?P<name>[a-z_]+)(\{{{_LABEL}(,{_LABEL})*\}})? -?\d+(\.\d+)?(e[+-]?\d+)?"
)


def names_of_metrics(answer: Answered) -> set[str]:
    """The names in an answer to Prometheus, each of which has its type before it."""
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    typed: set[str] = set()
    for line in answer.body.decode().splitlines():
        read = EXPOSED.fullmatch(line)
        assert read is not None, line
        if read["typed"]:
            assert read["typed"] not in typed, line
            typed.add(read["typed"])
        else:
            assert read["name"] in typed, line
    return typed


def test_a_running_experiment_is_seen_changed_and_lost(place: Place, server: WebServer) -> None:
    one = f"/experiments/{place.experiment.name}"
    stream = server.stream(f"{one}/events")
    standing = stream.next("standing").data
    assert standing["head"]["counts"]["running"] == 2
    assert server.get(f"{one}/head")["snapshot"]["slots"] == 2
    assert server.get(f"{one}/why")["text"]
    trial = standing["head"]["running"][0]["trial"]

    # What it wrote, whole, in parts, and as it comes.
    whole = server.ask("GET", f"{one}/trials/{trial}/log/stdout")
    assert whole.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert whole.body == b"\x1b[2Jtrial %d\n" % trial
    size = int(whole.headers["Bequeath-Size"])
    part = server.ask("GET", f"{one}/trials/{trial}/log/stdout?from=-4&limit=3")
    assert (part.body, part.headers["Bequeath-From"]) == (whole.body[-4:-1], str(size - 4))
    ranged = server.ask("GET", f"{one}/trials/{trial}/log/stdout", Range="bytes=4-8")
    assert (ranged.status, ranged.body) == (206, b"trial")
    assert ranged.headers["Content-Range"] == f"bytes 4-8/{size}"
    beyond = server.ask("GET", f"{one}/trials/{trial}/log/stdout", Range=f"bytes={size}-")
    assert (beyond.status, beyond.kind) == (416, "range")
    follow = server.stream(f"{one}/trials/{trial}/log/stdout?follow=1&from=4")
    assert follow.next("text").data == {"from": 4, "text": f"trial {trial}\n"}
    listed = server.get(f"{one}/trials/{trial}/files")
    assert "stdout" in {each["path"] for each in listed["files"]}
    saved = server.ask("GET", f"{one}/trials/{trial}/files/stdout")
    assert saved.body == whole.body
    assert saved.headers["Content-Disposition"] == "attachment; filename*=UTF-8''stdout"
    assert "sandbox" in saved.headers["Content-Security-Policy"]

    # Changes: twice the same request is one trial.
    first = server.ask("POST", f"{one}/trials", SUBMITTED, Idempotency_Key="k1")
    again = server.ask("POST", f"{one}/trials", SUBMITTED, Idempotency_Key="k1")
    assert (first.status, again.json()) == (200, first.json())
    assert again.headers["Idempotency-Replayed"] == "true"
    other = server.ask("POST", f"{one}/trials", {"parameters": {}}, Idempotency_Key="k1")
    assert (other.status, other.kind) == (400, "refused")
    third = server.ask("POST", f"{one}/trials", SUBMITTED, Idempotency_Key="k2")
    assert third.json()["trial"] != first.json()["trial"]
    by_hand = [one_trial.id for one_trial in place.trials() if one_trial.by_hand]
    assert by_hand == [first.json()["trial"], third.json()["trial"]]

    # A limit, if nobody has changed it meanwhile.
    tag = server.ask("GET", f"{one}/settings").headers["ETag"]
    wish = {"key": "trialConcurrency", "value": 3}
    assert server.ask("PATCH", one, wish, If_Match=tag).status == 200
    wait_until(lambda: server.get(f"{one}/head")["snapshot"]["slots"] == 3, "the limit counts")
    late = server.ask("PATCH", one, wish | {"value": 4}, If_Match=tag)
    assert (late.status, late.kind) == (409, "changed")
    odd = server.ask("POST", f"{one}/stop", {}, If_Match=tag)
    assert (odd.status, odd.kind) == (400, "request")

    metrics = server.raw("GET", "/metrics", {"Authorization": f"Bearer {server.token}"})
    assert f'bequeath_slots{{experiment="{place.experiment.name}"}} 3' in metrics.body.decode()

    assert {"bequeath_trials", "bequeath_slots_busy", "bequeath_web_responses_total"} <= (
        names_of_metrics(metrics)
    )

    # The head dies: the page says so, and says that it is back.
    run = RunFile.read(place.experiment)
    assert run is not None
    wait_until(lambda: _killed(run.pid), "the head is gone")
    assert stream.next("gone").data["since"] > 0
    refused = server.ask("POST", f"{one}/trials", SUBMITTED)
    assert (refused.status, refused.kind) == (503, "not-now")
    assert refused.headers["Retry-After"]
    assert server.get(f"{one}/table")["count"] >= 4
    resumed = server.ask("POST", f"{one}/resume")
    assert resumed.status == 200, resumed
    stream.next("back")
    place.go()  # a head that has nothing left to do may be over before anybody looks
    while stream.next("standing").data["experiment"]["status"] != "completed":
        pass
    stream.close()
    follow.next("end")
    follow.rest()
    follow.close()
    recorded = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert {"trial-submit", "experiment-update", "resume", "log", "file"} <= {
        each["what"] for each in recorded
    }


def _killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def test_an_experiment_is_run_with_its_page(place: Place) -> None:
    """The page ends with it, whatever ends it."""
    process = place.start("run", "experiment.yml", "--web")
    assert process.stderr is not None
    link = ""
    while "login?once=" not in link:
        link = process.stderr.readline().strip()
        assert link or process.poll() is None
    assert link.startswith("http://127.0.0.1:")  # alone on its line
    place.wait_until_running()
    servers = place.folder / "state" / "bequeath" / "web" / "servers"
    (known,) = servers.iterdir()
    pid = json.loads(known.read_bytes())["pid"]
    assert "login?once=" in place("web", "--link")
    place.go()
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert not list(servers.iterdir())
    assert not Path(f"/proc/{pid}").exists()
    assert out


def test_a_page_ends_with_a_run_that_is_killed(place: Place) -> None:
    process = place.start("run", "experiment.yml", "--web")
    place.wait_until_running()
    servers = place.folder / "state" / "bequeath" / "web" / "servers"
    wait_until(lambda: list(servers.glob("*")), "the page is there")
    (known,) = servers.iterdir()
    process.kill()
    wait_until(lambda: not known.exists(), "the page has ended")
