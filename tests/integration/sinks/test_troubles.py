"""A full disk, an experiment that goes away, a process that dies: nothing is lost, nobody waits."""

from __future__ import annotations

import http.server
import json
import logging
import os
import shutil
import threading
from pathlib import Path

import psutil
import pytest

from dispatcher.errors import PassingBackendError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head import sink_process
from dispatcher.head.logs import HeadLog
from dispatcher.head.sink_process import SinkProcess
from dispatcher.queries import ExperimentReader
from dispatcher.sinks.feeding import Feeding
from dispatcher.sinks.mlflow.kind import MlflowConfig
from dispatcher.sinks.serving import SinkThread
from dispatcher.sinks.standing import standings
from dispatcher.sinks.tensorboard.kind import TensorBoardConfig
from tests.faults.storage.conftest import SmallDisk
from tests.support.fed import FedLife, bytes_below, fill, journal_of, led, new_folder
from tests.support.processes import wait_until

LOG = HeadLog(logging.getLogger("tests.head"))


def feed(folder: Path, section: TensorBoardConfig) -> None:
    with Feeding(folder, section) as feeding:
        while feeding.step():
            pass


def test_a_full_disk_loses_no_byte(small_disk: SmallDisk, tmp_path: Path) -> None:
    """Mutation: a cursor beyond what was written."""
    folder = new_folder(tmp_path)
    there = small_disk.folder / "tb"
    section = TensorBoardConfig(kind="tensorboard", folder=str(there))
    with journal_of(folder) as journal:
        life = FedLife(journal)
        steps = life.some(range(1, 61), 60)
        for _ in range(100):
            next(steps)
        feed(folder, section)
        small_disk.fill()
        for _ in steps:
            pass
    for _ in range(3):
        with pytest.raises((PassingBackendError, OSError)):
            feed(folder, section)
    small_disk.free()
    feed(folder, section)
    feed(folder, TensorBoardConfig(kind="tensorboard", folder=str(tmp_path / "whole")))
    written, whole = bytes_below(there), bytes_below(tmp_path / "whole")
    assert len(whole) == 61
    assert written == whole


def test_an_experiment_that_is_deleted_ends_its_sinks(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    with led(folder):
        fill(folder, 5, 5)
        section = TensorBoardConfig(kind="tensorboard")
        one = SinkThread(folder, section, threading.Event())
        one.thread.start()
        wait_until(lambda: (folder / "sinks").is_dir(), "it has written how far it is")
        shutil.rmtree(folder, ignore_errors=True)
        one.thread.join(120)
    assert not one.thread.is_alive()
    shutil.rmtree(folder, ignore_errors=True)
    assert not folder.exists(), "nobody makes it again"


def test_status_tells_how_far_a_sink_is(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    fill(folder, 5, 2)
    over = threading.Event()
    over.set()
    SinkThread(folder, TensorBoardConfig(kind="tensorboard"), over).run()
    with journal_of(folder) as journal:
        life = FedLife.of(journal, FedLife.replayed(journal))
        for _ in life.some([6, 7], 2):
            pass
    with ExperimentReader.open(folder) as reader:
        (one,) = standings(folder, reader)
    assert (one.name, one.kind, one.taken, one.behind, one.error) == (
        "tensorboard", "tensorboard", 5, 2, "",
    )  # fmt: skip
    assert one.target == str(folder / "tb")
    for text in ("", "[]", '{"name": 1}', "\x00"):
        (folder / "sinks" / "x.state.json").write_text(text)
    with ExperimentReader.open(folder) as reader:
        assert len(standings(folder, reader)) == 1


def test_a_process_that_dies_is_started_again_and_not_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_folder(tmp_path)
    (folder / "logs").mkdir()
    monkeypatch.setattr(sink_process, "AGAIN_S", 1e9)
    one = SinkProcess(ExperimentFolder(folder), LOG, wanted=True)
    one.watch()
    first = one.pid
    assert first is not None
    # The folder holds no whole experiment: it ends with an error.
    wait_until(lambda: psutil.Process(first).status() == psutil.STATUS_ZOMBIE, "it ends")
    one.watch()
    assert one.pid == first, "not before a pause is over"
    monkeypatch.setattr(sink_process, "AGAIN_S", 0.0)
    one.watch()
    second = one.pid
    assert second not in (None, first)
    one.close()
    assert not psutil.pid_exists(second or 0)
    one.watch()
    assert one.pid is None, "it was closed"
    assert "record of an experiment" in (folder / "logs" / "sinks.log").read_text()


def test_a_log_that_is_no_file_holds_up_no_head(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutation: a pipe there is opened, and waited for without end."""
    folder = new_folder(tmp_path)
    (folder / "logs").mkdir()
    os.mkfifo(folder / "logs" / "sinks.log")
    with caplog.at_level("WARNING", "tests.head"):
        one = SinkProcess(ExperimentFolder(folder), LOG, wanted=True)
        watching = threading.Thread(target=one.watch, daemon=True)
        watching.start()
        watching.join(60.0)
    assert not watching.is_alive(), "it waits for a reader of the pipe"
    assert one.pid is None
    (line,) = caplog.records
    assert "sinks.log" in vars(line)["bequeath_about"]["error"]


class Echo(http.server.BaseHTTPRequestHandler):
    """A server that refuses, and repeats the password in its answer."""

    def do_GET(self) -> None:
        body = json.dumps({"error_code": "NO", "message": f"no: {self.headers['Authorization']}"})
        self.send_response(403)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


def test_what_a_tracker_repeats_of_a_secret_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutation: the answer of a server as it is."""
    monkeypatch.setenv("TRACKS", "a-token-that-nobody-may-see")
    folder = new_folder(tmp_path)
    fill(folder, 1, 1)
    over = threading.Event()
    over.set()
    with http.server.HTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uri = f"http://127.0.0.1:{server.server_port}"
        one = SinkThread(folder, MlflowConfig(kind="mlflow", uri=uri, token="env:TRACKS"), over)
        one.run()
        server.shutdown()
    with ExperimentReader.open(folder) as reader:
        (standing,) = standings(folder, reader)
    for text in (str(one.error), standing.error):
        assert "answers 403" in text
        assert "no: Bearer [masked]" in text
        assert "a-token" not in text + caplog.text


def test_a_head_without_sinks_starts_nothing(tmp_path: Path) -> None:
    one = SinkProcess(ExperimentFolder(tmp_path), LOG, wanted=False)
    one.watch()
    assert one.pid is None
    one.close()
