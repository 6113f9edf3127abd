"""What changes in an experiment reaches all who look, once, in order, and from where they were."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.store import SqliteJournal
from tests.integration.web.conftest import laid_down
from tests.support.processes import wait_until
from tests.support.web_server import EventReader, WebServer
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life

ONE = "/experiments/digits-abc123"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "home")


@pytest.fixture
def life(folder: Path) -> Iterator[Life]:
    """An experiment that a head of ours writes, with three trials that are over."""
    with closing(SqliteJournal.open(folder / "journal.sqlite", epoch=1)) as journal:
        life = Life(journal)
        life.begin()
        for trial in range(3):
            life.whole(trial, parent=trial - 1 if trial else None)
        yield life


@pytest.fixture
def server(life: Life, folder: Path, tmp_path: Path) -> Iterator[WebServer]:
    server = WebServer(folder.parent, tmp_path / "state")
    yield server
    server.end()


@pytest.fixture
def streams(server: WebServer) -> Iterator[list[EventReader]]:
    """Streams, closed at the end."""
    opened: list[EventReader] = []
    yield opened
    for one in opened:
        one.close()


class Held:
    """A table as a page holds it: rows by trial, patched by what comes."""

    def __init__(self, server: WebServer) -> None:
        table = server.get(f"{ONE}/table")
        self.cursor = table["cursor"]
        self.rows: dict[int, dict[str, Any]] = {}
        columns = table["columns"]
        for row in range(table["count"]):
            values = {}
            for column in columns:
                value = column["values"][row]
                if column["kind"] == "choice" and value is not None:
                    value = column["choices"][value]
                values[column["name"]] = value
            self.rows[values["trial"]] = values

    def take(self, step: dict[str, Any]) -> None:
        """Take in an answer of what changed."""
        assert not step["anew"]
        self.rows |= {row["trial"]: row for row in step["trials"]}
        self.cursor = step["cursor"]


def test_a_patched_table_is_the_one_that_is_read_anew(server: WebServer, life: Life) -> None:
    """Mutation: a change that a cursor passes over, a row that is patched otherwise than read."""
    held = Held(server)
    assert held.rows[2]["generation"] == 2
    assert (held.rows[1]["reports"], held.rows[1]["latest"]) == (2, 0.2)
    for trial in range(3, 9):
        life.propose(trial, trial - 1)
        life.run(trial, "0.75")
        held.take(server.get(f"{ONE}/changes?after={held.cursor}"))
        life.deliver(trial)
        life.say(e.MetricReported(TrialId(trial), 1, 5, "0.3"), durable=False)
    step = server.get(f"{ONE}/changes?after={held.cursor}")
    held.take(step)
    assert not server.get(f"{ONE}/changes?after={held.cursor}")["trials"]
    assert held.rows == Held(server).rows
    assert held.rows[8]["outcome"] == "succeeded"


def test_an_answer_waits_for_a_change(server: WebServer, life: Life) -> None:
    cursor = server.get(f"{ONE}/changes")["cursor"]
    began = time.monotonic()
    assert server.get(f"{ONE}/changes?after={cursor}&wait=0.5")["trials"] == []
    assert time.monotonic() - began >= 0.5
    stream = server.stream(f"{ONE}/events?after={cursor}")
    life.propose(3)
    waited = server.get(f"{ONE}/changes?after={cursor}&wait=60")
    assert {row["trial"] for row in waited["trials"]} >= {3}
    stream.next("changes")
    stream.close()


def test_all_streams_get_each_change_once_and_in_order(
    server: WebServer, life: Life, streams: list[EventReader]
) -> None:
    held = Held(server)
    streams += [server.stream(f"{ONE}/events?after={held.cursor}") for _ in range(8)]
    life.propose(3)
    life.run(3, "0.5")
    life.deliver(3)
    for stream in streams:
        mine = Held.__new__(Held)
        mine.rows, mine.cursor = dict(held.rows), held.cursor
        while mine.rows.get(3, {}).get("outcome") != "succeeded":
            event = stream.next("changes")
            assert event.ident == event.data["cursor"]
            mine.take(event.data)
        assert mine.rows[3]["value"] == 0.5


def test_a_stream_goes_on_where_it_was(server: WebServer, life: Life) -> None:
    first = server.stream(f"{ONE}/events")
    assert first.next("changes").data["anew"]
    life.propose(3)
    ident = first.next("changes").ident
    first.close()
    life.run(3, "0.5")
    server.end()
    life.deliver(3)
    life.propose(4)
    home = Path(server.environment["BEQUEATH_HOME"])
    again = WebServer(home, server.state, "--port", str(server.port))
    try:
        second = again.stream(f"{ONE}/events", Last_Event_ID=ident)
        seen: set[int] = set()
        while not seen >= {3, 4}:
            step = second.next("changes").data
            assert not step["anew"]
            seen |= {row["trial"] for row in step["trials"]}
        second.close()
    finally:
        again.end()


def test_a_new_parameter_asks_for_the_table_again(server: WebServer, life: Life) -> None:
    held = Held(server)
    stream = server.stream(f"{ONE}/events?after={held.cursor}")
    life.propose(3, None, '{"never_seen": 1}')
    step = stream.next("changes").data
    while not step["anew"]:
        step = stream.next("changes").data
    assert Held(server).rows[3]["never_seen"] == 1
    stream.close()


def test_the_table_is_sent_once(server: WebServer, life: Life) -> None:
    first = server.ask("GET", f"{ONE}/table")
    tag = first.headers["ETag"]
    assert server.ask("GET", f"{ONE}/table", If_None_Match=tag).status == 304
    small = server.ask("GET", f"{ONE}/table", Accept_Encoding="gzip")
    assert small.headers["Content-Encoding"] == "gzip"
    assert len(small.body) < len(first.body)
    life.propose(3)
    later = server.ask("GET", f"{ONE}/table", If_None_Match=tag)
    assert (later.status, later.headers["ETag"] != tag) == (200, True)


def test_an_experiment_that_is_deleted_under_an_open_page(
    folder: Path, server: WebServer, life: Life
) -> None:
    stream = server.stream(f"{ONE}/events")
    stream.next("standing")
    shutil.rmtree(folder)
    gone = stream.next("gone").data
    assert gone["deleted"]
    assert gone["error"]["kind"] == "no-experiment"
    stream.rest()
    stream.close()
    answer = server.ask("GET", f"{ONE}/table")
    assert (answer.status, answer.kind) == (404, "no-experiment")


def test_a_store_in_the_place_of_another_begins_anew(
    folder: Path, server: WebServer, life: Life, tmp_path: Path
) -> None:
    stream = server.stream(f"{ONE}/events")
    cursor = stream.next("changes").ident
    other = laid_down(tmp_path / "other", 5)
    for path in folder.glob("journal.sqlite*"):
        path.unlink()
    (other / "journal.sqlite").rename(folder / "journal.sqlite")
    event = stream.next("changes")
    assert event.data["anew"]
    assert event.ident != cursor
    assert server.get(f"{ONE}/table")["count"] == 5 + 2
    stream.close()


def test_bad_cursors_are_refused(server: WebServer) -> None:
    for cursor in ("x.y", "x.1.2.3", "'", "a" * 150, "0." + "9" * 30, "%00", "☃"):
        for path in ("changes", "events"):
            answer = server.ask("GET", f"{ONE}/{path}?after={quote(cursor)}")
            assert (answer.status, answer.kind) == (400, "refused"), cursor
            assert "cursor" in answer.json()["error"]["message"]


def test_it_ends_within_two_seconds_with_streams_open(
    server: WebServer, streams: list[EventReader]
) -> None:
    streams += [server.stream(f"{ONE}/events") for _ in range(5)]
    for stream in streams:
        stream.next("changes")
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: server.process.poll() is not None, "the server ends")
    took = time.monotonic() - began
    assert server.process.returncode == 0
    assert took < 60, took  # two seconds, on a machine that has nothing else to do


def test_where_nobody_counts_changes_the_table_is_asked_for_again(tmp_path: Path) -> None:
    """As under a head of 0.1.0. Mutation: a cursor that stays is taken for a table that does."""
    folder = laid_down(tmp_path / "home", 3)
    server = WebServer(folder.parent, tmp_path / "state")
    try:
        first = server.ask("GET", f"{ONE}/table")
        stream = server.stream(f"{ONE}/events?after={first.json()['cursor']}")
        stream.next("standing")
        with closing(sqlite3.connect(folder / "journal.sqlite")) as store:
            store.execute("UPDATE trials SET number = 0.125 WHERE id = 1")
            store.commit()
        step = stream.next("changes")
        assert (step.data["anew"], step.data["trials"]) == (True, [])
        later = server.ask("GET", f"{ONE}/table", If_None_Match=first.headers["ETag"])
        assert later.status == 200
        (values,) = (one["values"] for one in later.json()["columns"] if one["name"] == "value")
        assert values[1] == 0.125
        stream.close()
    finally:
        server.end()


def test_streams_that_begin_at_any_time_end_with_the_same_rows(
    server: WebServer, life: Life, streams: list[EventReader]
) -> None:
    """Others ask for the table and for changes meanwhile, and so take steps as well. Mutation: a
    step that is handed out once; a cursor that is ahead of its rows."""
    held = []
    for trial in range(3, 63):
        life.whole(trial, trial - 1, "0.25")
        if trial % 10 == 3:
            held.append(Held(server))
            streams.append(server.stream(f"{ONE}/events?after={held[-1].cursor}"))
        if trial % 7 == 0:
            server.get(f"{ONE}/changes?after={held[0].cursor}")
    for mine, stream in zip(held, streams, strict=True):
        while mine.rows.get(62, {}).get("state") != "ended":  # it has its outcome before
            mine.take(stream.next("changes").data)
    last = Held(server)
    for mine in held:
        over = {trial: row for trial, row in mine.rows.items() if row["state"] == "ended"}
        assert over == {t: row for t, row in last.rows.items() if row["state"] == "ended"}
