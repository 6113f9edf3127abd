"""Plays an experiment without trials: the real engine, core, journal and tuner host, and a backend
that follows a script. A tuner behaves there as in an experiment; only time is shorter. It begins
as a head does (``head/beginning.py``), and joins fewer rooms than ``head/led_experiment.py``.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import zmq

from dispatcher.channel import Router
from dispatcher.control.server import ControlServer
from dispatcher.core import State, outstanding
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import OVER
from dispatcher.core.settings import ASK_MORE_S, Settings, TunerErrorPolicy
from dispatcher.core.stalls import STACKS
from dispatcher.core.why import why
from dispatcher.engine import Engine
from dispatcher.errors import DispatcherError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.names import STORE_NAME
from dispatcher.head.beginning import begin_epoch
from dispatcher.ports import JournalEntry, JournalRow, RefusedEvent
from dispatcher.store.compaction import Compaction
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.folding import read_whole_past
from dispatcher.store.replay.restoring import RestoringTuner
from dispatcher.store.replay.showing import ShownFile
from dispatcher.tuner_host import TunerHostConfig, TunerHostDriver
from dispatcher.tuner_tools.scripted import FAILS, Script, ScriptedBackend
from trial_runtime.endpoint import Endpoint

_WORKER = WorkerId("local")

#: The engine's clock for looks at its peers runs so much faster than time, and it is woken so
#: often (seconds): scripted trials pass in milliseconds.
_HASTE = 500.0
_WAKE_S = 0.002

#: The folder for the few files of a rehearsal: in memory, if the machine offers that.
_SHM = "/dev/shm"  # noqa: S108 - a folder of its own below it

#: Seconds the tuner's process gets to start in.
_START_S = 60.0

#: Seconds the tuner gets for its ``_on_exit``.
_EXIT_S = 2.0


@dataclass(frozen=True, slots=True)
class RehearsalPlan:
    """Describes a rehearsal. Durations in seconds.

    ``failing`` is the share of trials that end badly, some of them after their result; ``late``
    that of trials which end long after all others; ``kill_tuner_at`` and ``kill_head_at`` are the
    numbers of ended trials after which the tuner's process, or head and tuner, are killed and
    started again; with ``after_state`` the tuner's not before its ``state()`` was kept.
    """

    trials: int = 200
    slots: int = 16
    lookahead: int = 48
    failing: float = 0.1
    late: float = 0.05
    seed: int = 0
    kill_tuner_at: int | None = None
    kill_head_at: int | None = None
    after_state: bool = False
    deadline_s: float = 120.0
    stall_timeout_s: float = 5.0
    switch_interval_s: float = 1e-5
    provoke: bool = False  # see dispatcher.tuner_host.provoking


@dataclass(slots=True)
class Rehearsed:
    """The outcome of a rehearsal. ``stuck``: a sentence on its state when its time was over."""

    state: State
    rows: list[JournalRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stacks: dict[int, str] = field(default_factory=dict)
    stalls: list[str] = field(default_factory=list)
    stuck: str = ""
    keeps_state: bool = False  # it was asked for its state(), and had one
    log: str = ""
    killed: bool = False  # the head was, and another one is to follow


class _Trials(ScriptedBackend):
    """A scripted backend in which time passes at each look."""

    def check(self) -> list[e.Event]:
        self.tick()
        return self.take()


class _Driver(TunerHostDriver):
    """A driver that knows whether the tuner's own state was ever taken."""

    has_state = False

    def receive(self, payload: bytes) -> list[e.Event]:
        events = super().receive(payload)
        self.has_state |= any(isinstance(one, e.TunerStateTaken) for one in events)
        return events


class _Watcher:
    """Keeps the engine's reports."""

    def __init__(self, rehearsed: Rehearsed) -> None:
        self._rehearsed = rehearsed

    def act(self, action: a.HeadAction) -> None:
        if isinstance(action, a.ReportStall):
            self._rehearsed.stalls.append(action.text.removesuffix(f". {STACKS}"))

    def stacks(self, stacks: dict[int, str]) -> None:
        self._rehearsed.stacks.update(stacks)

    def peer_fault(self, owner: str, error: Exception) -> None:
        self._rehearsed.notes.append(f"{owner}: {error}")

    def refused(self, refused: RefusedEvent) -> None:
        if refused.is_peers_fault:
            self.peer_fault(refused.owner, refused.error)


def rehearse(
    tuner: TunerHostConfig,
    plan: RehearsalPlan,
    script: Callable[[a.StartAttempt], Script] | None = None,
    folder: Path | None = None,
) -> Rehearsed:
    """Run an experiment with that tuner to its end. Blocks.

    Args:
        tuner: its class, arguments and search space; folders and endpoint are set here.
        plan: how many trials, and their fate.
        script: the course of each attempt; None follows the plan.
        folder: an empty one that keeps journal and log; None keeps neither.

    Raises:
        DispatcherError: the error that ended the engine.
    """
    home = folder or Path(tempfile.mkdtemp(prefix="bq-", dir=_fastest()))
    try:
        (home / "weights").mkdir()
        stage = _Stage(tuner, plan, script or scripted(plan), home)
        rehearsed = stage.lead(plan.kill_head_at)
        return stage.lead(None) if rehearsed.killed else rehearsed
    finally:
        if folder is None:
            shutil.rmtree(home, ignore_errors=True)


def _fastest() -> str | None:
    return _SHM if os.access(_SHM, os.W_OK) else None


def scripted(plan: RehearsalPlan) -> Callable[[a.StartAttempt], Script]:
    """Make the fate of each attempt by the plan; it does not depend on the order of starts."""

    def script(order: a.StartAttempt) -> Script:
        dice = random.Random(f"{plan.seed} {order.trial} {order.attempt}")  # noqa: S311
        ticks = dice.randint(1, 8) + (40 if dice.random() < plan.late else 0)
        digest = f"{order.trial:064x}" if order.save_path else None
        if dice.random() < plan.failing:
            return replace(_failing(dice, digest is not None), ticks=ticks)
        return Script(ticks=ticks, final=repr(dice.random()), digest=digest)

    return script


def _failing(dice: random.Random, promised: bool) -> Script:
    """Make the fate of a failing attempt: half of them report nothing.

    The others have a result that the tuner gets, and yet no weights: their process fails after it,
    or never saved the promised ones. The result is the best or the worst of all, so that children
    want to start from there.
    """
    if dice.random() < 0.5:
        return FAILS
    final = dice.choice(("-1.0", "2.0"))
    return Script(final=final) if promised and dice.random() < 0.5 else replace(FAILS, final=final)


class _Stage:
    """Runs one head after another on the same folder and trials."""

    def __init__(
        self,
        tuner: TunerHostConfig,
        plan: RehearsalPlan,
        script: Callable[[a.StartAttempt], Script],
        folder: Path,
    ) -> None:
        self._tuner = tuner
        self._plan = plan
        self._folder = folder
        self._epoch = 0
        self._notes: list[str] = []  # of all heads
        self._backend = _Trials(script, _WORKER, plan.slots)
        self._give_up_at = time.monotonic() + plan.deadline_s + _START_S
        self._has_begun = False
        self._kill_tuner_at = plan.kill_tuner_at
        adapted = bool(tuner.adapter) and not tuner.builtin
        self._settings = Settings(
            slots=plan.slots,
            lookahead=plan.lookahead,
            max_trials=plan.trials,
            on_tuner_error=TunerErrorPolicy.CONTINUE,
            trial_retries=0,
            # As NNI asks (decision 0055), and with time to ask for more before it is a stall.
            asks_at_most=plan.slots if adapted else 0,
            stall_timeout_s=plan.stall_timeout_s + (ASK_MORE_S if adapted else 0.0),
            end_dropped=True,
            assess=tuner.assessor is not None or adapted,
        )

    def lead(self, kill_head_at: int | None) -> Rehearsed:
        """Run one head, and return what came of it and of those before.

        Args:
            kill_head_at: the number of ended trials after which it is killed.
        """
        with ExitStack() as stack:
            journal = SqliteJournal.open(self._folder / STORE_NAME)
            stack.callback(journal.close)
            if not self._epoch:
                created = JournalEntry(time.time(), e.ExperimentCreated(self._settings))
                journal.append([created], (), durable=False)
            compaction = Compaction(journal)
            past = read_whole_past(journal, compaction)
            state = past.state
            self._epoch += 1
            now = max(time.time(), state.now)
            row = begin_epoch(journal, state, [e.HeadStarted(self._epoch)], now, durable=False)
            seen = Rehearsed(state, notes=self._notes)
            context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
            stack.callback(context.term)
            router = Router(context)
            stack.callback(router.close)
            driver = self._driver(router)
            engine = Engine(
                state,
                journal,
                router,
                RestoringTuner(driver, journal, compaction, self._folder / "restore", past),
                {_WORKER: self._backend},
                ControlServer(_nobody, _nobody, time.time),
                _Watcher(seen),
                row=row,
                compactor=compaction,
                monotonic=lambda: time.monotonic() * _HASTE,
            )
            engine.begin([*outstanding(state), a.LaunchWorker(_WORKER)])
            engine.start()
            seen.killed = self._until_it_is_over(engine, router, driver, seen, kill_head_at)
            engine.join()
            if seen.killed and driver.pid is not None:
                os.killpg(driver.pid, signal.SIGKILL)
            driver.close(0.0 if seen.killed or seen.stuck else _EXIT_S)
            if engine.error is not None:
                raise engine.error
            seen.rows = list(journal.rows())
            seen.keeps_state = journal.latest_snapshot() is not None
            log = ExperimentFolder(self._folder).tuner_log
            seen.log = log.read_text(errors="replace") if log.exists() else ""
            return seen

    def _driver(self, router: Router) -> _Driver:
        address = router.bind_ipc(self._folder / f"head{self._epoch}")
        config = msgspec.structs.replace(
            self._tuner,
            endpoint=Endpoint(address),
            weights_root=str(self._folder / "weights"),
            epoch=self._epoch,
            restore=str(self._folder / "restore"),
            switch_interval_s=self._plan.switch_interval_s,
            provoke=self._plan.provoke,
        )
        link = router.admit("tuner", f"tuner:{secrets.token_hex(16)}")
        shown = ShownFile(self._folder / STORE_NAME, self._folder / "shown")
        return _Driver(link, config, self._folder, on_note=self._notes.append, shown=shown)

    def _until_it_is_over(
        self,
        engine: Engine,
        router: Router,
        driver: _Driver,
        seen: Rehearsed,
        kill_head_at: int | None,
    ) -> bool:
        """Wait for the end; true if the head was killed and another one is to follow."""
        while not engine.finished.wait(_WAKE_S):
            router.wake()
            over = engine.state.results_seen
            if engine.state.host_ready and not self._has_begun:
                self._has_begun = True  # the time to start a process is not counted
                self._give_up_at = time.monotonic() + self._plan.deadline_s
            if kill_head_at is not None and over >= kill_head_at:
                engine.abandon()
                return engine.state.phase not in OVER
            due = self._kill_tuner_at is not None and over >= self._kill_tuner_at
            if due and (driver.has_state or not self._plan.after_state):
                self._kill_tuner_at = None
                if driver.pid is not None:
                    os.kill(driver.pid, signal.SIGKILL)
            if time.monotonic() > self._give_up_at:
                engine.abandon()
                engine.join()
                if engine.error is None and engine.state.phase not in OVER:
                    seen.stuck = why(engine.state, time.time()).text
                    seen.stacks = seen.stacks or _asked_stacks(engine.state, router, driver)
                return False
        return False


def _asked_stacks(state: State, router: Router, driver: TunerHostDriver) -> dict[int, str]:
    """Ask for the stacks of the threads that block the end. The engine has ended."""
    trials = (*state.delivering, *state.open, *state.blocked)[:8]
    driver.perform(a.AskStacks(trials))
    driver.flush()
    stacks: dict[int, str] = {}
    give_up_at = time.monotonic() + _EXIT_S
    while not stacks and time.monotonic() < give_up_at:
        for _, _, payload in router.poll(0.1):
            for event in driver.receive(payload):
                if isinstance(event, e.StacksReported):
                    stacks.update(event.stacks)
    return stacks


def _nobody(*_: Any) -> NoReturn:
    raise DispatcherError("a rehearsal takes no requests")
