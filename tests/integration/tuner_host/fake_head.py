"""A head reduced to its tuner port: a real ROUTER, the real driver, a real process."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import zmq

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import FailReason, Verdict
from dispatcher.ports import ShownPast
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.driver import TunerHostDriver
from trial_runtime.endpoint import Endpoint

OK = Verdict()
PATIENCE_S = 120.0


class RouterLink:
    """What the channel room's link does, on a socket of the test's own."""

    def __init__(self, router: zmq.Socket[bytes]) -> None:
        self.router = router
        self.routing_id = b""
        self.connected = False
        self.backlog: list[bytes] = []

    def send(self, payload: bytes) -> bool:
        self.backlog.append(payload)
        if self.connected:
            self.flush()
        return True

    def flush(self) -> None:
        while self.backlog:
            try:
                self.router.send_multipart([self.routing_id, self.backlog[0]])
            except zmq.ZMQError as error:
                if error.errno == zmq.EHOSTUNREACH:
                    return  # it has just ended
                raise
            del self.backlog[0]

    def renew(self, routing_id: str) -> None:
        self.routing_id = routing_id.encode()
        self.connected = False
        self.backlog.clear()


class FakeHead:
    """Opens requests and takes events; answers no wait by itself."""

    def __init__(self, folder: Path, *, shown: ShownPast | None = None, **config: Any) -> None:
        self.folder = folder
        self.sockets = Path(tempfile.mkdtemp(prefix="bq-"))
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self.router.setsockopt(zmq.SNDHWM, 0)
        self.router.setsockopt(zmq.RCVHWM, 0)
        self.router.setsockopt(zmq.LINGER, 0)
        self.router.bind(f"ipc://{self.sockets}/head")
        self.link = RouterLink(self.router)
        self.notes: list[str] = []
        (folder / "weights").mkdir(parents=True, exist_ok=True)
        config.setdefault("weights_root", str(folder / "weights"))
        settings = TunerHostConfig(endpoint=Endpoint(f"ipc://{self.sockets}/head"), **config)
        self.driver = TunerHostDriver(
            self.link, settings, folder, on_note=self.notes.append, shown=shown
        )
        self.events: list[e.Event] = []
        self.frames = 0

    # ---- speaking ------------------------------------------------------------------------

    def launch(self) -> FakeHead:
        self.do(a.LaunchTuner())
        return self

    def start(self) -> FakeHead:
        self.launch()
        self.wait_for(e.TunerHostReady)
        return self

    def do(self, *actions: Any) -> None:
        for action in actions:
            self.driver.perform(action)
        self.driver.flush()

    def open(self, *trials: int) -> None:
        self.do(*(a.OpenRequest(trial) for trial in trials))

    def deliver(
        self,
        trial: int,
        value: Any = 1.0,
        *,
        success: bool = True,
        verdict: Verdict = OK,
        parameters: Any = None,
        **more: Any,
    ) -> None:
        text = None if value is None else json.dumps(value)
        self.do(a.Deliver(trial, json.dumps(parameters or {}), text, success, verdict, **more))

    def fail(self, trial: int, reason: FailReason = FailReason.FAILED) -> None:
        self.deliver(trial, None, success=False, verdict=Verdict(reason))

    # ---- listening -----------------------------------------------------------------------

    def poll(self, timeout_s: float = 0.1) -> list[e.Event]:
        """New events; none if nothing was said in time."""
        events: list[e.Event] = []
        if self.router.poll(round(timeout_s * 1000)):
            while True:
                try:
                    sender, payload = self.router.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                if sender != self.link.routing_id:
                    continue
                self.frames += 1
                self.link.connected = True
                self.link.flush()
                events.extend(self.driver.receive(payload))
        events.extend(self.driver.check())
        self.events.extend(events)
        return events

    def wait_for(self, kind: type, trial: int | None = None) -> Any:
        """The first event of that kind (and trial) that was not waited for before."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for index, event in enumerate(self.events):
                if isinstance(event, kind) and trial in (None, getattr(event, "trial", None)):
                    return self.events.pop(index)
            lost = [one for one in self.events if isinstance(one, e.TunerHostLost)]
            assert not lost, lost[0].reason
            assert time.monotonic() < deadline, f"no {kind.__name__} {trial}: {self.events[:20]}"
            self.poll()

    def lost(self) -> e.TunerHostLost:
        """The end of the process."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for event in self.events:
                if isinstance(event, e.TunerHostLost):
                    self.events.remove(event)
                    return event
            self.poll(0.02)
        raise AssertionError(f"the process is still there: {self.events[:20]}")

    def answer(self, wait: e.WaitStarted, kind: str, **fields: Any) -> None:
        self.do(a.AnswerWait(wait.trial, wait.ticket, kind, **fields))

    def log(self) -> str:
        self.driver.settle_log()
        return (self.folder / "logs" / "tuner.log").read_text()

    def close(self, deadline_s: float = 10.0) -> None:
        self.driver.close(deadline_s)
        self.router.close()
        self.context.term()
        shutil.rmtree(self.sockets)
