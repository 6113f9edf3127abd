"""Notes, tags, stars and boards over a real head: page, command line and Python at once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dispatcher import Experiment
from dispatcher.errors import DispatcherError
from dispatcher.folders.ownership import NotOurs
from dispatcher.store.verify import verify
from tests.integration.cli.conftest import Place, place
from tests.integration.web.conftest import EXPERIMENT, laid_down
from tests.support.processes import wait_until
from tests.support.web_server import EventReader, WebServer

__all__ = ["place"]


@pytest.fixture
def running(place: Place) -> Iterator[WebServer]:
    """A server over an experiment of which two trials run."""
    place("create", "experiment.yml")
    place.wait_until_running()
    server = WebServer(place.kept, place.folder / "state")
    yield server
    server.end()


def row_of(stream: EventReader, trial: int, **wanted: Any) -> dict[str, Any]:
    """The first row of a trial that a stream brings with these cells."""
    while True:
        for row in stream.next("changes").data["trials"]:
            if row["trial"] == trial and wanted.items() <= row.items():
                return dict(row)


def test_what_people_write_beside_a_running_head_reaches_all(
    place: Place, running: WebServer
) -> None:
    name = place.experiment.name
    one = f"/experiments/{name}"
    table = running.get(f"{one}/table")
    assert {"tags", "starred", "notes"} <= {column["name"] for column in table["columns"]}
    stream = running.stream(f"{one}/events?after={table['cursor']}")

    # By REST, by command, by Python: each is seen by those who look, as it comes.
    posted = running.ask("POST", f"{one}/trials/0/notes", {"text": "by <b>REST</b>"})
    assert (posted.status, posted.json()["notes"][0]["text"]) == (200, "by <b>REST</b>")
    assert row_of(stream, 0)["notes"] == 1
    place("trial", "tag", "0", "good", "data:x", "-e", name)
    assert row_of(stream, 0, notes=1)["tags"] == "data:x good"
    python = Experiment.open(place.experiment)
    assert python.perform("trial star", trial=0).starred
    assert row_of(stream, 0, starred=1)["tags"] == "data:x good"
    found = running.get(f"{one}/trials?where=tag%3Dgood+and+starred%3Dtrue")["trials"]
    assert [(each["id"], each["tags"], each["starred"]) for each in found] == [
        (0, ["data:x", "good"], True)
    ]

    # All at once, on one trial: nobody's is lost.
    def by_rest(at: int) -> int:
        body = {"add": [f"rest{at}"], "remove": ["good"]}
        return running.ask("PATCH", f"{one}/trials/1/tags", body).status

    def by_python(at: int) -> int:
        python.perform("trial tag", trial=1, add=[f"python{at}"])
        python.perform("trial note", trial=1, text=f"note {at}")
        return 200

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(act, at) for at in range(12) for act in (by_rest, by_python)]
        assert {each.result() for each in asked} == {200}
    shown = running.get(f"{one}/trials/1")
    expected = {f"{who}{at}" for who in ("rest", "python") for at in range(12)}
    assert set(shown["trial"]["tags"]) == expected
    assert sorted(each["text"] for each in shown["notes"]) == sorted(
        f"note {at}" for at in range(12)
    )

    # The experiment's own come with its standing.
    place("experiment", "tag", "dataset:cifar10", "-e", name)
    running.ask("PUT", f"{one}/star")
    while not (stream.next("standing").data["experiment"]).get("starred"):
        pass
    summary = running.get(one)["experiment"]
    assert (summary["dataset"], summary["starred"]) == ("cifar10", True)

    # A note that is asked for twice with one key is written once.
    for _ in range(2):
        key = {"Idempotency-Key": "once"}
        once = running.ask("POST", f"{one}/notes", {"text": "once"}, **key)
        assert once.status == 200
    notes = once.json()["notes"]
    assert [each["text"] for each in notes] == ["once"]
    wait_until(lambda: running.get(one)["experiment"]["notes"] == notes, "the note is there")
    gone = running.ask("DELETE", f"{one}/notes/{notes[0]['number']}")
    assert (gone.status, gone.json()["notes"]) == (200, [])

    # The head went on all the while, and its journal is what it was.
    stream.close()
    assert running.get(f"{one}/head")["snapshot"]["counts"]["running"] == 2
    place("stop", "--grace", "0", name)
    assert verify(place.experiment / "journal.sqlite").ok
    assert Experiment.open(place.experiment).perform("trial show", trial=0).trial.starred


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server over an experiment of forty trials that are over."""
    home = tmp_path_factory.mktemp("home")
    laid_down(home)
    server = WebServer(home, tmp_path_factory.mktemp("state"))
    yield server
    server.end()


ONE = f"/experiments/{EXPERIMENT}"

CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "/trials/3/notes", {"text": "x"}),
    ("DELETE", "/trials/3/notes/1", None),
    ("PATCH", "/trials/3/tags", {"add": ["x"]}),
    ("PUT", "/trials/3/star", {}),
    ("DELETE", "/trials/3/star", None),
    ("POST", "/notes", {"text": "x"}),
    ("DELETE", "/notes/1", None),
    ("PATCH", "/tags", {"add": ["x"]}),
    ("PUT", "/star", {}),
    ("DELETE", "/star", None),
]


def test_a_share_reads_and_changes_nothing(server: WebServer) -> None:
    """Mutation: a row of the table with the scope of a reader."""
    token = json.loads(server.command("web", "--share", "reader", "--json"))["token"]
    reader = {"Authorization": f"Bearer {token}"}
    store = Path(server.environment["BEQUEATH_HOME"]) / EXPERIMENT / "journal.sqlite"
    before = store.read_bytes()
    for method, path, body in CHANGES:
        text = None if body is None else json.dumps(body)
        refused = server.raw(method, f"/api/v1{ONE}{path}", reader, text)
        assert (refused.status, refused.kind) == (403, "scope"), (method, path)
    assert store.read_bytes() == before
    for path in ("/leaderboard", f"{ONE}/trials/3"):
        assert server.raw("GET", f"/api/v1{path}", reader).status == 200
    for method, path, body in CHANGES:
        assert server.ask(method, f"{ONE}{path}", body).status == 200, (method, path)


@pytest.mark.parametrize(
    "method,path,body,status,kind",
    [
        ("POST", "/trials/99/notes", {"text": "x"}, 404, "no-trial"),
        ("POST", "/trials/3/notes", {"text": " "}, 400, "refused"),
        ("POST", "/trials/3/notes", {"text": "a\x00b"}, 400, "refused"),
        ("POST", "/trials/3/notes", {"text": "x" * 2001}, 400, "refused"),
        ("POST", "/trials/3/notes", {"text": 3}, 400, "refused"),
        ("DELETE", "/trials/3/notes/none", None, 400, "refused"),
        ("DELETE", "/trials/3/notes/0", None, 400, "refused"),
        ("PATCH", "/trials/3/tags", {"add": ["<b>"]}, 400, "refused"),
        ("PATCH", "/trials/3/tags", {"add": ["x" * 65]}, 400, "refused"),
        ("PATCH", "/trials/3/tags", {"add": ["x"] * 51}, 400, "refused"),
        ("PATCH", "/tags", {"give": ["x"]}, 400, "refused"),
        ("PUT", "/star", {"trial": 3}, 400, "refused"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    server: WebServer, method: str, path: str, body: Any, status: int, kind: str
) -> None:
    answer = server.ask(method, ONE + path, body)
    assert (answer.status, answer.kind) == (status, kind), answer.body
    assert answer.json()["error"]["message"]


def test_boards_by_rest_command_and_python_are_one(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(server.environment["BEQUEATH_HOME"])
    monkeypatch.setenv("BEQUEATH_HOME", str(home))
    laid_down(home, 12, "digits-second")
    server.ask("PATCH", f"{ONE}/tags", {"add": ["dataset:digits", "good"]})
    told = server.get("/leaderboard?group=dataset")
    names = [
        (board["group"], [one["experiment"]["id"] for one in board["experiments"]])
        for board in told["boards"]
    ]
    assert names == [("digits", [EXPERIMENT]), ("", ["digits-second"])]
    words = ("leaderboard", "--tag", "good", "--group", "none", "--folder", str(home), "--json")
    typed = json.loads(server.command(*words))
    assert typed == server.get("/leaderboard?group=none&tag=good")
    python = Experiment.open(home / EXPERIMENT).perform("leaderboard", group="name")
    assert [one.runs for board in python.boards for one in board.names] == [2]
    assert server.ask("GET", "/leaderboard?group=mood").status == 400
    assert server.ask("GET", "/leaderboard?starred=true").json()["boards"] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to somebody else")
def test_nobody_writes_into_somebody_elses_experiment(server: WebServer, tmp_path: Path) -> None:
    """Mutation: the owner is not looked at before the store is opened for writing."""
    folder = laid_down(tmp_path / "theirs")
    for path in (folder, *folder.iterdir()):
        os.chown(path, 1234, 1234)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    theirs = Experiment.open(folder)
    for name, trial, given in (
        ("trial note", 3, {"text": "x"}),
        ("trial tag", 3, {"add": ["x"]}),
        ("experiment star", None, {}),
    ):
        with pytest.raises(NotOurs):
            theirs.perform(name, trial=trial, **given)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    home = Path(server.environment["BEQUEATH_HOME"])
    shutil.move(folder, home / "digits-theirs")
    refused = server.ask("PUT", "/experiments/digits-theirs/star")
    assert (refused.status, refused.kind) == (403, "not-ours")
    assert "digits-theirs" not in json.dumps(server.get("/leaderboard"))


def test_a_copy_has_what_people_wrote(server: WebServer, tmp_path: Path) -> None:
    server.ask("POST", f"{ONE}/trials/4/notes", {"text": "kept"})
    server.ask("PATCH", f"{ONE}/trials/4/tags", {"add": ["kept"]})
    home = Path(server.environment["BEQUEATH_HOME"])
    copy = Experiment.open(home / EXPERIMENT).perform(
        "experiment backup", destination=str(tmp_path / "copies")
    )
    shown = Experiment.open(copy.folder).perform("trial show", trial=4)
    assert (shown.trial.tags, [note.text for note in shown.notes]) == (("kept",), ["kept"])
    (row,) = (one for one in server.get(f"{ONE}/export.json") if one["trial"] == 4)
    assert (row["tags"], row["starred"]) == (["kept"], False)
    with pytest.raises(DispatcherError, match="has no trial 99"):
        Experiment.open(copy.folder).perform("trial star", trial=99)
