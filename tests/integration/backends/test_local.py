"""The local backend with a real ROUTER and a real agent."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from dispatcher.channel.router import Router
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason
from tests.support.local_backend import LocalBackend
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.agent.processes.record import is_running, read_record
from trial_runtime.endpoint import Endpoint

PATIENCE_S = 120.0
LOCAL = WorkerId("local")


class Head:
    """An engine's loop, without an engine: events are kept, batches acknowledged."""

    def __init__(self, folder: Path, epoch: int = 1, **trial: Any) -> None:
        self.folder = folder
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.router = Router(self.context)
        address = self.router.bind_ipc(folder / "r" / "head")
        trial = {"code_directory": str(folder), "command": "true", "stop_grace_s": 1.0, **trial}
        self.backend = LocalBackend(
            self.router.admit("local", "agent:local:placeholder"),
            AgentConfig(
                worker="local",
                slots=2,
                head=Endpoint(address),
                epoch=epoch,
                run_folder=str(folder / "r"),
                experiment_folder=str(folder),
                trial=TrialSpec(**trial),
                weights_root=str(folder / "weights"),
                heartbeat_s=0.2,
            ),
        )
        self.events: list[e.Event] = []

    def turn(self) -> None:
        for owner, _peer, payload in self.router.poll(0.05):
            assert owner == "local"
            self.events += self.backend.receive(payload)
            self.backend.acknowledge()
        self.events += self.backend.check()
        self.backend.flush()

    def until(self, condition: Callable[[], Any]) -> Any:
        give_up = time.monotonic() + PATIENCE_S
        while not (answer := condition()):
            log = self.folder / "logs" / "agent.log"
            assert time.monotonic() < give_up, (self.events, log.exists() and log.read_text())
            self.turn()
        return answer

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def launch(self) -> None:
        self.backend.perform(a.LaunchWorker(LOCAL))
        self.until(lambda: self.of(e.WorkerJoined))

    def start(self, trial: int, attempt: int = 1) -> None:
        self.backend.perform(a.StartAttempt(LOCAL, TrialId(trial), attempt, "{}"))
        self.backend.flush()

    def die(self) -> None:
        """As kill -9 would: nothing is said, the agent is left."""
        self.router.close()
        self.context.destroy(linger=0)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bq-") as name:
        path = Path(name).resolve()
        (path / "r").mkdir(mode=0o700)
        yield path
        record = read_record(path / "agent-local.json")
        if record is not None and is_running(record):
            os.kill(record.pid, signal.SIGTERM)


def test_an_attempt_from_order_to_end(folder):
    head = Head(folder)
    assert head.backend.waiting() == "the agent of this machine is not running"
    head.launch()
    assert head.backend.waiting() is None
    head.start(3)
    (end,) = head.until(lambda: head.of(e.AttemptEnded))
    assert (end.trial, end.attempt, end.reason, end.exit_code) == (3, 1, EndReason.FINISHED, 0)
    assert [type(event) for event in head.events] == [
        e.WorkerJoined,
        e.AttemptStarted,
        e.AttemptEnded,
    ]
    pid = head.backend.statistics().pid
    head.backend.close(leave_running=False, deadline_s=PATIENCE_S)
    assert pid is not None
    assert not Path(f"/proc/{pid}").exists()
    head.die()


def test_the_next_head_takes_up_the_agent(folder):
    head = Head(folder, command="until [ -e go ]; do sleep 0.02; done")
    head.launch()
    pid = head.backend.statistics().pid
    head.start(1)
    head.until(lambda: head.of(e.AttemptStarted))
    head.die()
    head = Head(folder, epoch=2)
    head.launch()
    assert head.backend.statistics().pid == pid
    (joined,) = head.of(e.WorkerJoined)
    assert joined.holds == ((1, 1),)
    (folder / "go").touch()
    (end,) = head.until(lambda: head.of(e.AttemptEnded))
    assert end.reason is EndReason.FINISHED
    head.backend.close(leave_running=False, deadline_s=PATIENCE_S)
    head.die()


def test_an_agent_that_dies_is_lost_with_its_trials(folder):
    head = Head(folder, command="echo $$ > pid; sleep 600")
    head.launch()
    head.start(1)
    head.until(lambda: (folder / "pid").exists() and (folder / "pid").read_text())
    trial = int((folder / "pid").read_text())
    pid = head.backend.statistics().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    head.until(lambda: head.of(e.WorkerLost))
    head.until(lambda: not Path(f"/proc/{trial}").exists())
    head.events.clear()
    head.launch()
    assert head.backend.statistics().pid != pid
    head.backend.close(leave_running=False, deadline_s=PATIENCE_S)
    head.die()


def test_stop(folder):
    head = Head(folder, command="sleep 600")
    head.launch()
    head.start(1)
    head.until(lambda: head.of(e.AttemptStarted))
    head.backend.perform(a.StopAttempt(LOCAL, TrialId(1), 1, EndReason.KILLED, 5.0))
    (end,) = head.until(lambda: head.of(e.AttemptEnded))
    assert end.reason is EndReason.KILLED
    head.backend.close(leave_running=False, deadline_s=PATIENCE_S)
    head.die()
