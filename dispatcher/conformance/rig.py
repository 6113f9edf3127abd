"""A head without tuner, core and journal, as far as a platform sees it; a test drives it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import zmq

from dispatcher.channel import Router
from dispatcher.conformance.questions import Questions
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.snapshot import from_json
from dispatcher.experiments.creating import create
from dispatcher.folders.experiment_folder import ExperimentFolder, run_folder
from dispatcher.head.endpoints import open_endpoints
from dispatcher.head.workers import Workers
from dispatcher.wiring.weights import weights_root

CODE = Path(__file__).parent / "code"

PATIENCE_S = 120.0
"""Longest wait for any event: a busy machine starts processes slowly."""

CALL_S = 20.0
"""Longest time of one call from the engine's thread, on a machine that is busy with much else:
it should take none."""

_CHECK_EVERY_S = 0.1

Seen = TypeVar("Seen")


def new_experiment(service: Any, base: Path, **keys: Any) -> ExperimentFolder:
    """Create an experiment on these services, whose trials do what their parameters say."""
    values: dict[str, Any] = {
        "experimentName": "conformance",
        "experimentWorkingDirectory": str(base),
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialFunction": "conformance_trial:main",
        "trialCodeDirectory": str(CODE),
        "trialConcurrency": 2,
        "trialStopGrace": "2s",
        "headGrace": "60s",
        "seed": 1,
        "trainingService": service,
        **keys,
    }
    return ExperimentFolder(create(build_experiment(values)))


class Rig:
    """One head's workers and its ROUTER; events are kept, and acknowledged afterwards.

    Args:
        folder: of the experiment.
        epoch: greater than that of any earlier head.
        known: whether an earlier head has left workers.
    """

    def __init__(self, folder: ExperimentFolder, epoch: int = 1, *, known: bool = False) -> None:
        self.folder = folder
        self.leads = True
        self.config = from_json(folder.read_config())
        self.root = weights_root(self.config, folder)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._router = Router(self._context)
        sockets = run_folder(folder.path)
        address = self._router.bind_ipc(sockets / "head")
        names = [worker.name for _, worker in self.config.workers]
        self.worker_set = Workers(
            self.config,
            folder,
            self._router,
            open_endpoints(self.config, folder, self._router, address),
            epoch=epoch,
            sockets=sockets,
            known=set(names if known else ()),
            leads=lambda: self.leads,
        )
        self._questions = Questions(self._router, folder, address, epoch, self.worker_set)
        self.events: list[e.Event] = []
        self.acknowledging = True
        self.relaunching = True
        self.longest_s = 0.0  # of all calls
        self._next_check = 0.0

    @property
    def workers(self) -> list[WorkerId]:
        """Their names."""
        return self.worker_set.workers

    def launch(self) -> None:
        """Launch all workers, and wait until they have joined."""
        for worker in self.workers:
            self.perform(a.LaunchWorker(worker))
        for worker in self.workers:
            self.joined(worker)

    def joined(self, worker: WorkerId) -> e.WorkerJoined:
        """Wait until a worker has joined; return its newest hello."""
        return self.wait(lambda: self._last(e.WorkerJoined, worker=worker), f"{worker} joins")

    def start(self, worker: WorkerId, trial: int, do: str, attempt: int = 1, **more: Any) -> None:
        """Order an attempt.

        Args:
            worker: the worker to run it.
            trial: its number.
            do: a key of ``_ACTIONS`` in ``code/conformance_trial.py``.
            attempt: number of the attempt.
            more: fields of the order that begin with ``restore_``, and further parameters.
        """
        order = {key: more.pop(key) for key in tuple(more) if key.startswith("restore_")}
        save_path = str(self.root / str(trial)) if do == "save" else None
        parameters = {"do": do, **more, **({"restore_path": "."} if order else {})}
        text = json.dumps(parameters)
        self.perform(a.StartAttempt(worker, TrialId(trial), attempt, text, save_path, **order))

    def stop(self, worker: WorkerId, trial: int, grace_s: float, attempt: int = 1) -> None:
        """Order the end of an attempt.

        Args:
            worker: the worker that runs it.
            trial: its number.
            grace_s: seconds until it is ended by force.
            attempt: number of the attempt.
        """
        reason = EndReason.KILLED
        self.perform(a.StopAttempt(worker, TrialId(trial), attempt, reason, grace_s))

    def perform(self, action: a.WorkerAction) -> None:
        """Give an action to its worker's driver, as the engine does."""
        driver = self.worker_set.drivers[action.worker]
        self._timed(lambda: driver.perform(action))
        self._timed(driver.flush)

    def turn(self) -> None:
        """Do one turn of an engine's loop."""
        active: set[str] = set()
        for owner, peer, payload in self._router.poll(0.02):
            if not owner:
                self._questions.take(peer, payload)
            driver = self.worker_set.drivers.get(owner)
            if driver is not None:
                self._take(self._timed(lambda d=driver, p=payload: d.receive(p)))  # type: ignore[misc]
                active.add(owner)
        if time.monotonic() >= self._next_check:
            self._next_check = time.monotonic() + _CHECK_EVERY_S
            for name, driver in self.worker_set.drivers.items():
                events = self._timed(driver.check)
                self._take(events)
                if events:
                    active.add(name)
        for name in active:
            if self.acknowledging:
                self._timed(self.worker_set.drivers[name].acknowledge)
            self._timed(self.worker_set.drivers[name].flush)
        self._questions.answer()

    def beside(self, call: Callable[[], Seen]) -> Seen:
        """Turn while another thread does something that may ask this head; returns its result."""
        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(call)
            self.wait(done.done, "what was done beside it is done")
            return done.result()

    def wait(self, look: Callable[[], Seen | None], what: str) -> Seen:
        """Turn until ``look`` returns something; fails with a report of all events."""
        give_up = time.monotonic() + PATIENCE_S
        while not (seen := look()):
            assert time.monotonic() < give_up, f"never: {what}\n{self.report()}"
            self.turn()
        return seen

    def events_of(self, trial: int, kind: type[Seen], attempt: int = 1) -> list[Seen]:
        """All events of one kind about an attempt.

        Args:
            trial: its number.
            kind: the class of the events.
            attempt: number of the attempt.
        """
        return [
            event
            for event in self.events
            if isinstance(event, kind)
            and (getattr(event, "trial", None), getattr(event, "attempt", None)) == (trial, attempt)
        ]

    def end(self, trial: int, attempt: int = 1) -> e.AttemptEnded:
        """Wait for the end of an attempt."""
        ends = self.wait(lambda: self.events_of(trial, e.AttemptEnded, attempt), f"{trial} ends")
        return ends[0]

    def final(self, trial: int) -> Any:
        """The final result of an attempt that has ended."""
        (result,) = self.events_of(trial, e.FinalReported)
        return json.loads(result.value)

    def first_number(self, trial: int) -> int:
        """Wait for the first intermediate result: a number."""
        metrics = self.wait(lambda: self.events_of(trial, e.MetricReported), f"{trial} reports")
        return int(json.loads(metrics[0].value))

    def die(self) -> None:
        """End as by ``kill -9``: without a message to any worker.

        Threads of visits go on for a moment; they belong to a head that does not lead.
        """
        self._router.close()
        self._context.destroy(linger=0)

    def close(self, *, leave_running: bool) -> None:
        """End as a head does. Closed or dead already: nothing."""
        if self._context.closed:
            return
        try:
            self._questions.close()
            self.worker_set.close(leave_running=leave_running, deadline_s=15.0)
        finally:
            self.die()

    def report(self) -> str:
        """All events, and the ends of the logs, for a test that has failed."""
        lines = [f"  {event}" for event in self.events[-30:]]
        lines += [
            f"  {name}: {driver.waiting()}" for name, driver in self.worker_set.drivers.items()
        ]
        for log in sorted(self.folder.path.glob("**/logs/*.log")):
            lines.append(f"{log}: {log.read_text(errors='replace')[-1500:]}")
        return "\n".join(lines)

    def _take(self, events: list[e.Event]) -> None:
        self.events += events
        for event in events:
            if isinstance(event, e.WorkerLost) and self.relaunching and not event.kept_out:
                self.perform(a.LaunchWorker(event.worker))

    def _last(self, kind: type[Seen], **fields: object) -> Seen | None:
        for event in reversed(self.events):
            if isinstance(event, kind) and _has(event, fields):
                return event
        return None

    def _timed(self, call: Callable[[], Seen]) -> Seen:
        began = time.monotonic()
        try:
            return call()
        finally:
            self.longest_s = max(self.longest_s, time.monotonic() - began)


def _has(event: object, fields: Mapping[str, object]) -> bool:
    return all(getattr(event, name) == value for name, value in fields.items())
