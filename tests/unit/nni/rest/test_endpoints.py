"""Ports that are open: found by commands and scripts, and closed when nobody needs them."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import ExperimentNotFound, StoreBusy, UserError
from dispatcher.nni.rest import endpoints, process
from dispatcher.nni.rest.endpoints import OpenEndpoint, endpoint_at, open_endpoints
from dispatcher.nni.rest.settings import nni_state
from dispatcher.nni.script.experiment import Experiment
from dispatcher.queries import ExperimentStatus
from tests.unit.nni.rest.conftest import EXPERIMENT, Asked


def an_endpoint(port: int, folder: Path, pid: int = 0, machine: str = "") -> OpenEndpoint:
    machine = machine or socket.gethostname()
    return OpenEndpoint(pid or os.getpid(), machine, port, "", folder.name, str(folder))


@pytest.fixture
def port() -> Any:
    """One at which this process listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        yield one.getsockname()[1]


def test_an_endpoint_is_found_while_it_is_open(tmp_path: Path, port: int) -> None:
    path = endpoints.publish(tmp_path, an_endpoint(port, tmp_path))
    assert path.stat().st_mode & 0o077 == 0
    assert endpoint_at(tmp_path, port) == an_endpoint(port, tmp_path)
    assert endpoint_at(tmp_path, 1) is None
    endpoints.take_back(path)
    assert open_endpoints(tmp_path) == []


def test_what_a_killed_process_has_left_is_no_endpoint(tmp_path: Path, port: int) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    for wrong in (
        an_endpoint(port, tmp_path, pid=gone.pid),
        an_endpoint(port, tmp_path, machine="elsewhere"),
        an_endpoint(1, tmp_path),
    ):
        path = endpoints.publish(tmp_path, wrong)
        assert open_endpoints(tmp_path) == []
        path.unlink()
    (tmp_path / "endpoints" / "5.json").write_text("{")
    assert open_endpoints(tmp_path) == []


def test_a_file_of_the_next_process_at_a_port_stays(tmp_path: Path, port: int) -> None:
    path = endpoints.publish(tmp_path, an_endpoint(port, tmp_path, pid=os.getppid()))
    endpoints.take_back(path)
    assert path.exists()


def test_a_script_connects_to_a_port(
    asked: Asked, tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(UserError, match=f"port {port}"):
        Experiment.connect(port)
    endpoints.publish(nni_state(), an_endpoint(port, asked.folder))
    found = Experiment.connect(port)
    assert (found.id, found.port) == (EXPERIMENT, port)
    assert found.get_job_statistics() == asked.get("/job-statistics")


class Standings:
    """Answers how an experiment stands, one after the other; the last one again and again."""

    def __init__(self, *rest: Any) -> None:
        self._rest = list(rest)
        self.reading = self.app = self.experiment = self
        self.asked_at = 0.0
        self.finished_at = 0.0

    async def standing(self) -> Any:
        self.status = self._rest.pop(0) if len(self._rest) > 1 else self._rest[0]
        if isinstance(self.status, Exception):
            raise self.status
        return self

    def finish(self) -> None:
        self.finished_at = time.monotonic()


RUNNING, STOPPED, DONE = (
    ExperimentStatus.RUNNING,
    ExperimentStatus.STOPPED,
    ExperimentStatus.COMPLETED,
)


@pytest.mark.parametrize(
    "rest,closes",
    [
        ([RUNNING, STOPPED], True),
        ([ExperimentNotFound("gone")], True),
        ([StoreBusy("locked"), RUNNING, STOPPED], True),
        ([RUNNING], False),
        ([STOPPED], False),  # a head is about to take it up
        ([STOPPED, RUNNING, DONE], False),  # scripts wait for that word
        ([RUNNING, ExperimentStatus.INTERRUPTED], False),
    ],
)
def test_a_port_closes_with_its_experiment(
    rest: list[Any], closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LOOK_S", 0.01)
    monkeypatch.setattr(process, "LINGER_S", 0.01)
    one = Standings(*rest)

    async def watched() -> None:
        async with asyncio.timeout(0.5):
            await process.close_when_over(one, one)  # type: ignore[arg-type]

    if closes:
        asyncio.run(watched())
    else:
        with pytest.raises(TimeoutError):
            asyncio.run(watched())
    assert bool(one.finished_at) == closes


@pytest.mark.parametrize("status,closes", [(DONE, True), (RUNNING, False)])
def test_a_port_closes_that_nobody_asks(
    status: ExperimentStatus, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LOOK_S", 0.01)
    monkeypatch.setattr(process, "LINGER_S", 0.01)
    monkeypatch.setattr(process, "IDLE_S", 0.2)
    one = Standings(status)
    begin = time.monotonic()

    async def watched() -> None:
        async with asyncio.timeout(1.5):
            asking = asyncio.create_task(ask())
            await process.close_when_over(one, one)  # type: ignore[arg-type]
            await asking

    async def ask() -> None:
        for _ in range(10):
            one.asked_at = time.monotonic()
            await asyncio.sleep(0.05)

    if closes:
        asyncio.run(watched())
        assert one.finished_at - begin > 0.6, "the last question counts, not the first"
    else:
        with pytest.raises(TimeoutError):
            asyncio.run(watched())
