"""The real head and tuner host with a backend that does as it is told.

What the gate costs is measured between the words of an agent and the start of a child, so
the agent and the trials themselves are left out: trials end when the benchmark says so.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import zmq

from benchmarks.run_experiment import TRIALS
from dispatcher.channel import Router
from dispatcher.control.server import ControlServer
from dispatcher.core import actions as a
from dispatcher.core import apply, new_state, outstanding
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason
from dispatcher.core.settings import Settings
from dispatcher.engine import Engine
from dispatcher.head.collector import walk_less
from dispatcher.ports import JournalEntry
from dispatcher.store.journal import SqliteJournal
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.driver import TunerHostDriver
from trial_runtime.endpoint import Endpoint


class TimedBackend:
    """Notes when each attempt is started; :meth:`finish` ends one."""

    def __init__(self) -> None:
        self.started: dict[int, float] = {}
        self.any_started = threading.Event()
        self.acknowledged: list[float] = []

    def perform(self, action: a.WorkerAction) -> None:
        if isinstance(action, a.StartAttempt):
            self.started[action.trial] = time.perf_counter()

    def flush(self) -> None:
        pass

    def receive(self, payload: bytes) -> list[e.Event]:
        return []

    def acknowledge(self) -> None:
        pass

    def check(self) -> list[e.Event]:
        return []

    def close(self, *, leave_running: bool, deadline_s: float) -> None:
        pass


class TimedJournal(SqliteJournal):
    """Notes when each trial's end, and each metric, was committed."""

    ended: dict[int, float]
    metrics: dict[int, float]

    def append(self, entries, touched, *, durable):  # type: ignore[no-untyped-def]
        number = super().append(entries, touched, durable=durable)
        now = time.perf_counter()
        for entry in entries:
            if isinstance(entry.event, e.AttemptEnded):
                self.ended[entry.event.trial] = now
            elif isinstance(entry.event, e.MetricReported):
                self.metrics[entry.event.seq] = now
        return number


class _Quiet:
    def __init__(self) -> None:
        self.over: dict[int, float] = {}
        self.faults: list[str] = []

    def act(self, action: a.HeadAction) -> None:
        if isinstance(action, a.TrialIsOver):
            self.over[action.trial] = time.perf_counter()
        elif not isinstance(action, a.Finish):
            self.faults.append(repr(action))

    def stacks(self, stacks: dict[int, str]) -> None:
        pass

    def peer_fault(self, owner: str, error: Exception) -> None:
        self.faults.append(f"{owner}: {error}")


class Bench:
    """One experiment under the hand of the benchmark."""

    def __init__(self, folder: Path, settings: Settings, class_name: str, **class_args: object):
        self.context = zmq.Context()
        self.router = Router(self.context)
        address = self.router.bind_ipc(folder / "head")
        self.journal = TimedJournal.open(folder / "journal.sqlite")
        self.journal.ended, self.journal.metrics = {}, {}
        self.backend = TimedBackend()
        self.watcher = _Quiet()
        self.driver = TunerHostDriver(
            self.router.admit("tuner", "tuner:benchmark"),
            TunerHostConfig(
                endpoint=Endpoint(address),
                weights_root=str(folder / "weights"),
                class_name=f"tuners_for_benchmarks:{class_name}",
                code_directory=str(TRIALS),
                class_args=class_args,
            ),
            folder,
        )
        state = new_state(settings)
        for event in (
            e.ExperimentCreated(settings),
            e.HeadStarted(1),
            e.WorkerJoined(WorkerId("local"), settings.slots),
        ):
            apply(state, event, time.time())
            self.journal.append([JournalEntry(time.time(), event)], (), durable=True)
        desk = ControlServer(lambda p: e.TrialSubmitted("{}"), lambda k, v: [])
        self.engine = Engine(
            state,
            self.journal,
            self.router,
            self.driver,
            {"local": self.backend},
            desk,
            self.watcher,
        )
        self.engine.begin(outstanding(state))
        self.engine.start()

    def finish(self, trial: int) -> float:
        """Let a running trial report its result and end; return when that was said."""
        number = TrialId(trial)
        self.engine.post(e.AttemptStarted(number, 1))
        self.engine.post(e.FinalReported(number, 1, 1, "1.0"))
        said = time.perf_counter()
        self.engine.post(e.AttemptEnded(number, 1, EndReason.FINISHED, 0))
        return said

    def until(self, condition, what: str, timeout_s: float = 60.0) -> None:  # type: ignore[no-untyped-def]
        """Look every millisecond, and give up in the end."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if self.engine.error is not None:
                raise self.engine.error
            if time.monotonic() > deadline:
                state = self.engine.state
                raise TimeoutError(
                    f"{what}: open {len(state.open)}, blocked {len(state.blocked)}, running "
                    f"{len(state.running)}, faults {self.watcher.faults[:3]}"
                )
            time.sleep(0.001)

    def close(self) -> None:
        """End everything."""
        self.engine.abandon()
        self.engine.join(30)
        self.driver.close(5.0)
        self.router.close()
        self.context.term()
        self.journal.close()


@contextmanager
def bench(settings: Settings, class_name: str, **class_args: object) -> Iterator[Bench]:
    """A :class:`Bench` in a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="bq-") as folder:
        one = Bench(Path(folder), settings, class_name, **class_args)
        walk_less()  # as in a head's own process
        try:
            yield one
        finally:
            one.close()
