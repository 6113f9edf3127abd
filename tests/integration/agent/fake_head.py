"""A head that does what a test says: a real ROUTER, and an agent process below it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import zmq

from tests.support.processes import holds_within
from tests.support.workers import LOCAL
from trial_runtime import facts, wire
from trial_runtime.agent.config import AgentConfig, TrialSpec, encode_config
from trial_runtime.endpoint import Endpoint
from trial_runtime.fact_wire import decode_fact

ROOT = Path(__file__).parents[3]
PATIENCE_S = 120.0
ROUTING_ID = "agent:local:secret"


class FakeHead:
    """Speaks with one agent; ``words`` is all it has heard, in order and without repeats."""

    #: Where its agent is started, and the environment that it gets; None: ours.
    agent_folder = ROOT
    agent_environment: dict[str, str] | None = None

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.folder = folder
        self.run_folder = folder / "r"
        self.weights = folder / "weights"
        self.code = folder / "code"
        for each in (self.run_folder, self.weights, self.code):
            each.mkdir(exist_ok=True)
        self.run_folder.chmod(0o700)
        self.context = zmq.Context()
        self.socket: zmq.Socket[bytes] | None = None
        self.words: list[facts.AttemptFact] = []
        self.hellos: list[wire.AgentHello] = []
        self.heartbeats: list[wire.Heartbeat] = []
        self.offers: list[wire.OfferMessage] = []
        self.fenced: list[int] = []
        self.taken = 0
        self.life = ""
        self.epoch = 1
        self.acknowledging = True
        self.changes = changes
        self.process: subprocess.Popen[bytes] | None = None
        self.take_also: Callable[[wire.FromAgent], object] = lambda message: None
        self.bind()

    @property
    def address(self) -> str:
        return f"ipc://{self.run_folder}/head"

    def bind(self) -> None:
        self.socket = self.context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.bind(self.address)

    def die(self) -> None:
        """As after kill -9: the socket is gone, nothing was said."""
        assert self.socket is not None
        self.socket.close(linger=0)
        self.socket = None

    def live_again(self) -> None:
        """A new head, that knows nothing."""
        self.epoch += 1
        self.life = ""
        self.bind()

    def config(self) -> AgentConfig:
        trial = {"code_directory": str(self.code), "stop_grace_s": 5.0}
        options: dict[str, Any] = {}
        for key, value in self.changes.items():
            (trial if key in TrialSpec.__struct_fields__ else options)[key] = value
        return AgentConfig(
            **{
                "worker": "local",
                "slots": 2,
                "head": Endpoint(self.address, ROUTING_ID),
                "epoch": self.epoch,
                "run_folder": str(self.run_folder),
                "experiment_folder": str(self.folder),
                "trial": TrialSpec(**trial),
                "weights_root": str(self.weights),
                "heartbeat_s": 0.2,
                **options,
            }
        )

    def launch(self) -> None:
        path = self.folder / "agent.config"
        path.write_bytes(encode_config(self.config()))
        with open(self.folder / "agent.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "trial_runtime.agent", str(path)],
                cwd=self.agent_folder,
                env=self.agent_environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    # -- orders ----------------------------------------------------------------------------

    def send(self, *messages: wire.FromHead, epoch: int | None = None) -> None:
        assert self.socket is not None
        frame = wire.frame(
            wire.HeadFrame(epoch or self.epoch, [wire.encode_order(m) for m in messages])
        )
        self.socket.send_multipart((ROUTING_ID.encode(), frame))

    def start(self, trial: int, attempt: int = 1, parameters: Any = None, **more: Any) -> None:
        text = msgspec.json.encode(parameters or {}).decode()
        self.send(facts.StartAttempt(LOCAL, trial, attempt, text, **more))

    def run(self, trial: int = 1, attempt: int = 1, **more: Any) -> facts.AttemptEnded:
        """Start an attempt and wait for its end."""
        self.until(lambda: self.life, "hello")
        self.start(trial, attempt, **more)
        return self.end_of(trial, attempt)

    # -- words -----------------------------------------------------------------------------

    def until(self, condition: Callable[[], Any], what: str = "") -> Any:
        """Listen until it holds."""
        give_up = time.monotonic() + PATIENCE_S
        while not (answer := condition()):
            assert time.monotonic() < give_up, f"gave up: {what}\n{self.log()}"
            self.listen(0.05)
        return answer

    def listen(self, for_s: float) -> None:
        """Take what comes for at most this long, and less once something came."""
        assert self.socket is not None
        if not self.socket.poll(int(for_s * 1000) + 1):
            return
        while self.socket.poll(0):
            _, payload = self.socket.recv_multipart()
            self._take(wire.from_agent(payload))

    def _take(self, frame: wire.AgentFrame) -> None:
        for message in frame.messages:
            self.take_also(message)
            if isinstance(message, wire.Fenced):
                self.fenced.append(message.epoch)
            elif frame.epoch < self.epoch:
                self.send(wire.Welcome())
            elif isinstance(message, wire.AgentHello):
                self.hellos.append(message)
                if message.life != self.life:
                    self.life = message.life
                    self.taken = message.first - 1
            elif isinstance(message, wire.Offers):
                self.offers.append(message.offer)
            elif isinstance(message, wire.Heartbeat):
                self.heartbeats.append(message)
                self.send(wire.Ping())
            elif isinstance(message, wire.AttemptMessages):
                known = self.taken + 1 - message.first
                assert known >= 0, "words are missing"
                fresh = message.messages[known:]
                self.words += [decode_fact(raw) for raw in fresh]
                self.taken += len(fresh)
                if self.acknowledging:
                    self.send(wire.Ack(self.taken))

    def of(self, kind: type[Any], trial: int, attempt: int = 1) -> list[Any]:
        return [
            w for w in self.words if type(w) is kind and (w.trial, w.attempt) == (trial, attempt)
        ]

    def end_of(self, trial: int, attempt: int = 1) -> facts.AttemptEnded:
        self.until(
            lambda: self.of(facts.AttemptEnded, trial, attempt), f"the end of {trial}.{attempt}"
        )
        (end,) = self.of(facts.AttemptEnded, trial, attempt)
        return end

    def metrics(self, trial: int, attempt: int = 1) -> list[Any]:
        return [msgspec.json.decode(w.value) for w in self.of(facts.MetricReported, trial, attempt)]

    def finals(self, trial: int, attempt: int = 1) -> list[Any]:
        return [msgspec.json.decode(w.value) for w in self.of(facts.FinalReported, trial, attempt)]

    # -- files and processes ---------------------------------------------------------------

    def output(self, trial: int, attempt: int = 1, stream: str = "stdout") -> str:
        path = self.folder / "trials" / str(trial) / str(attempt) / stream
        return path.read_text() if path.exists() else ""

    def log(self) -> str:
        return (self.folder / "agent.log").read_text() if self.process else ""

    def ours(self) -> list[int]:
        """Processes that were started for this test, apart from the agent itself."""
        found = []
        marker = str(self.folder).encode()
        for name in os.listdir("/proc"):
            if not name.isdigit() or (self.process and int(name) == self.process.pid):
                continue
            try:
                if marker in Path(f"/proc/{name}/environ").read_bytes():
                    state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
                    if state != "Z":
                        found.append(int(name))
            except OSError:
                pass
        return found

    def script(self, text: str, name: str = "train.py") -> None:
        (self.code / name).write_text(text)

    def wait(self) -> int:
        """Until the agent has ended by itself: its exit code."""
        assert self.process is not None
        return self.process.wait(PATIENCE_S)

    def _all_killed(self) -> bool:
        """Dying takes a moment, in which they may still write."""
        left = self.ours()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    def close(self) -> None:
        """Nothing may be left, whatever the test did: not of it, and not in its folder."""
        if self.process is not None:
            if self.process.poll() is None and self.socket is not None:
                try:
                    self.send(wire.Shutdown(0.0))
                    self.process.wait(10)
                except (zmq.ZMQError, subprocess.TimeoutExpired):
                    pass
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            holds_within(self._all_killed, PATIENCE_S)
        self.context.destroy(linger=0)
