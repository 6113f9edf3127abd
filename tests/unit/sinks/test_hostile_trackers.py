"""Trackers that answer nonsense, repeat what they got, or never end; and links among our files."""

from __future__ import annotations

import base64
import http.server
import json
import os
import shutil
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from dispatcher.errors import DispatcherError
from dispatcher.queries import ExperimentReader
from dispatcher.sinks.feeding import Feeding
from dispatcher.sinks.mlflow import client, sink
from dispatcher.sinks.mlflow.kind import MlflowConfig
from dispatcher.sinks.serving import SinkThread
from dispatcher.sinks.standing import standings
from dispatcher.sinks.tensorboard.kind import TensorBoardConfig
from tests.support.fed import FedLife, bytes_below, fill, journal_of, new_folder

THERE = b'{"experiment": {"experiment_id": "1"}}'
SECRET = "a-password-that-nobody-may-see"
BOTH = base64.b64encode(f"alice:{SECRET}".encode()).decode()

#: Answers to the first question, the second and so on; the last one to all others.
NONSENSE = {
    "nothing": [b"{}"],
    "a number": [b'{"experiment": 7}'],
    "a list": [b'{"experiment": [1]}'],
    "no runs": [THERE, b'{"runs": 7}', b"{}"],
    "odd runs": [THERE, b'{"runs": [1]}'],
    "odd tags": [THERE, b'{"runs": [{"info": {"run_id": "r"}, "data": {"tags": [{}]}}]}', b"{}"],
    "a trial that is none": [
        THERE,
        b'{"runs": [{"info": {"run_id": "r"}, "data": {"tags": ['
        b'{"key": "bequeath.trial", "value": "abc"}]}}]}',
        b"{}",
    ],
    "pages without end": [THERE, b'{"runs": [], "next_page_token": "again"}'],
    "no utf-8": [b'\xff{"a": 1}'],
    "more runs than were asked for": [
        THERE,
        b'{"runs": [' + b",".join([b'{"info": {"run_id": "r"}}'] * 300) + b"]}",
    ],
    "a name without end": [b'{"experiment": {"experiment_id": "' + b"1" * 100_000 + b'"}}'],
    "no end of brackets": [b"[" * 100_000],
}


class Tracker(http.server.BaseHTTPRequestHandler):
    """Answers what it is given."""

    protocol_version = "HTTP/1.1"
    uri: ClassVar[str]
    answers: ClassVar[list[bytes]]
    raw = b""
    refusal = ""
    refused = b""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.raw:
            self.wfile.write(self.raw)
            self.close_connection = True
            return
        answers = type(self).answers
        body = answers.pop(0) if len(answers) > 1 else answers[0]
        if self.refusal:
            told = self.refusal + self.headers["Authorization"]
            body = json.dumps({"error_code": "NO", "message": told}).encode()
        body = self.refused or body
        self.send_response(403 if self.refusal or self.refused else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(kind: type[Tracker]) -> Iterator[type[Tracker]]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        kind.uri = f"http://127.0.0.1:{server.server_port}"
        yield kind
        server.shutdown()


@pytest.fixture
def tracker() -> Iterator[type[Tracker]]:
    """A kind of server of the test's own, which runs."""

    class Own(Tracker):
        answers: ClassVar[list[bytes]] = [b"{}"]

    with served(Own):
        yield Own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = new_folder(tmp_path)
    fill(folder, 2, 2)
    return folder


def fed(folder: Path, tracker: type[Tracker], **more: str) -> DispatcherError | None:
    """The error that a sink ends with."""
    over = threading.Event()
    over.set()
    section = MlflowConfig.model_validate({"kind": "mlflow", "uri": tracker.uri, **more})
    one = SinkThread(folder, section, over)
    one.run()
    return one.error


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_an_error_that_is_told_and_tried_again(
    folder: Path, tracker: type[Tracker], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a KeyError, which ends the sink for good."""
    monkeypatch.setattr(sink, "MOST_PAGES", 5)
    tracker.answers = list(NONSENSE[name])
    error = fed(folder, tracker)
    assert error is not None
    assert "MLflow server" in error.message
    with ExperimentReader.open(folder) as reader:
        (standing,) = standings(folder, reader)
    assert (standing.behind, standing.taken) == (2, 0)
    assert "MLflow server" in standing.error


def test_a_huge_answer_takes_no_memory_of_its_own(folder: Path, tracker: type[Tracker]) -> None:
    """Mutation: it is read as objects, of which each has twenty times as many bytes."""
    many = 3_000_000
    tracker.answers = [THERE, b'{"runs": [], "junk": [' + b"{}," * many + b"{}]}", b"{}"]
    tracemalloc.start()
    try:
        error = fed(folder, tracker)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error is not None
    assert "without 'run'" in error.message
    assert most < 16 * many  # the answer itself, and copies of it


def test_an_answer_beyond_all_bounds_is_not_read(
    folder: Path, tracker: type[Tracker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 1_000)
    tracker.answers = [b'{"experiment": {"experiment_id": "1"}}' + b" " * 2_000]
    error = fed(folder, tracker)
    assert error is not None
    assert "no MLflow server" in error.message


@pytest.mark.parametrize("depth", [*range(700, 1_000, 20), 5_000])
def test_a_refusal_of_any_shape_is_an_error(
    folder: Path, tracker: type[Tracker], depth: int
) -> None:
    """Mutation: what is no text is written out as one, which ends the sink for good."""
    tracker.refused = b'{"message": ' + b"[" * depth + b"]" * depth + b', "error_code": [{}]}'
    error = fed(folder, tracker)
    assert error is not None
    assert error.message == "the MLflow server answers 403 at 'experiments/get-by-name'"


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 9999999 x\r\n\r\n",
        b"x" * 70_000 + b"\r\n\r\n",
        b"",
    ],
    ids=lambda raw: repr(raw[-12:]),
)
def test_what_is_no_http_passes(folder: Path, tracker: type[Tracker], raw: bytes) -> None:
    tracker.raw = raw or b"\r\n"
    error = fed(folder, tracker)
    assert error is not None
    assert len(error.message) < 600


@pytest.mark.parametrize("filling", ["got ", "x" * 280], ids=["whole", "cut"])
def test_no_part_of_a_password_is_shown_however_it_is_written(
    folder: Path,
    tracker: type[Tracker],
    filling: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Mutation: the password as Base64, or the beginning of one that was cut, is not masked."""
    monkeypatch.setenv("TRACKS_USER", "alice")
    monkeypatch.setenv("TRACKS", SECRET)
    tracker.refusal = filling
    error = fed(folder, tracker, username="env:TRACKS_USER", password="env:TRACKS")
    with ExperimentReader.open(folder) as reader:
        (standing,) = standings(folder, reader)
    for text in (str(error), standing.error, caplog.text):
        assert "answers 403" in text
        assert BOTH[:8] not in text
        assert SECRET not in text


def test_an_answer_that_dribbles_in_has_its_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: each byte gives a tracker another minute."""
    monkeypatch.setattr(client, "WHOLE_S", 0.5)
    stop = threading.Event()

    class Slow(Tracker):
        def do_GET(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while not stop.wait(0.05):
                try:
                    self.wfile.write(b" ")
                except OSError:
                    return

    with served(Slow):
        error = fed(folder, Slow)
        stop.set()
    assert error is not None
    assert "does not answer" in error.message


def test_hands_that_are_shaken_slowly_have_their_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the socket can be cut off only once it is encrypted."""
    monkeypatch.setattr(client, "WHOLE_S", 0.5)
    server = socket.create_server(("127.0.0.1", 0))
    pause = threading.Event()
    cut_off: list[bool] = []

    def dribble() -> None:
        line, _ = server.accept()
        with line:
            line.sendall(b"\x16\x03\x03\x40\x00")  # 16 KiB of a handshake are to come
            try:
                for _ in range(400):
                    line.sendall(b"x")
                    pause.wait(0.05)
            except OSError:
                cut_off.append(True)

    class Encrypted(Tracker):
        uri = f"https://127.0.0.1:{server.getsockname()[1]}"

    thread = threading.Thread(target=dribble)
    thread.start()
    error = fed(folder, Encrypted)
    thread.join()
    server.close()
    assert error is not None
    assert "does not answer" in error.message
    assert cut_off == [True], "it was left to say all it had"


# -- links among TensorBoard's files ------------------------------------------------------------


def feed(folder: Path, section: TensorBoardConfig) -> None:
    with Feeding(folder, section) as feeding:
        while feeding.step():
            pass


@pytest.mark.parametrize("kind", ["link", "hard link", "folder", "fifo"])
def test_nothing_is_cut_back_that_is_not_ours(tmp_path: Path, kind: str) -> None:
    """A trial may put links where files of ours are. Mutation: what one leads to is cut back."""
    folder = new_folder(tmp_path)
    thesis = tmp_path / "thesis"
    thesis.write_bytes(b"x" * 100_000)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    section = TensorBoardConfig(kind="tensorboard")
    with journal_of(folder) as journal:
        steps = FedLife(journal).some(range(1, 6), 20)
        for _ in range(12):
            next(steps)
        feed(folder, section)
        (cursor,) = (folder / "tb").glob("*.cursor.json")
        live = [f"trial-{int(trial):05d}" for trial in json.loads(cursor.read_bytes())["live"]]
        files = [one for name in live for one in (folder / "tb" / name).iterdir()]
        assert files
        for file in files:
            file.unlink()
            if kind == "link":
                file.symlink_to(thesis)
            elif kind == "hard link":
                os.link(thesis, file)
            elif kind == "fifo":
                os.mkfifo(file)
            else:
                shutil.rmtree(file.parent)
                file.parent.symlink_to(elsewhere)
        for _ in steps:
            pass
    feed(folder, section)
    assert thesis.read_bytes() == b"x" * 100_000
    assert list(elsewhere.iterdir()) == []
    feed(folder, TensorBoardConfig(kind="tensorboard", folder=str(tmp_path / "whole")))
    assert bytes_below(folder / "tb") == bytes_below(tmp_path / "whole" / folder.name)
