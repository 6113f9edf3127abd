"""Any scheduler, under a state machine: its lists lag, it refuses, forgets, starts again and cannot
cancel, heads die at any moment; promises are checked at each call."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.platforms.allocations import held
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Allocator,
    Bounds,
    Gone,
)
from dispatcher.platforms.allocations.held import UNSEEN_S
from dispatcher.platforms.allocations.incarnation import Incarnation
from dispatcher.platforms.allocations.process import AllocationProcess, Load
from dispatcher.platforms.allocations.turns import MOST_FAILURES, Turns
from tests.support.lengths import some_of
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint

S = AllocationState
WORKERS = ("q-1", "q-2", "q-3")
HEAD_GRACE_S = 30.0
PICK = st.integers(min_value=0, max_value=1000)
CONFIG = AgentConfig(
    worker="q-1",
    slots=1,
    head=Endpoint("tcp://127.0.0.1:1"),
    epoch=1,
    run_folder="/run",
    experiment_folder="/e",
    trial=TrialSpec("/code", command="true", environment={}),
    weights_root="/w",
    head_grace_s=HEAD_GRACE_S,
)


class _Dies(BaseException):
    """The head dies within a call."""


@dataclass
class _Job:
    """An allocation as it really is; ``listed_at``: from when on the list has it."""

    worker: str
    ticket: str
    listed_at: float
    state: AllocationState = S.WAITING
    gone: Gone | None = None

    @property
    def lives(self) -> bool:
        return self.state is not S.ENDED


class _Scheduler(Allocator):
    """What is cancelled before it is listed lives on: nobody knows it yet."""

    look_every_s = 5.0

    def __init__(self, world: AnyScheduler) -> None:
        self.world = world
        self.calls = 0

    def look(self) -> Sequence[Allocation]:
        self.calls += 1
        world = self.world
        if world.look_faults:
            raise world.look_faults.pop()
        return [
            Allocation(name, job.state, gone=job.gone)
            for name, job in world.jobs.items()
            if world.now >= job.listed_at
        ]

    @property
    def most_at_once(self) -> int:  # type: ignore[override]
        return self.world.most

    def submit(self, order: AllocationOrder) -> None:
        self.submit_many([order])

    def submit_many(self, orders: Sequence[AllocationOrder]) -> None:
        self.calls += 1
        world = self.world
        assert len(orders) <= max(1, world.most)
        fault, taken = world.submit_faults.pop(0) if world.submit_faults else (None, True)
        for order in orders:
            worker = order.config.worker
            world.check_order(worker, order.name)
            if taken and order.name not in world.jobs:
                world.jobs[order.name] = _Job(
                    worker, order.config.ticket, world.now + world.lag_s, world.first
                )
        if isinstance(fault, _Dies):
            world.dies = True
        elif fault is not None:
            raise fault

    def tell(self, name: str, config: AgentConfig) -> None:
        self.calls += 1
        if self.world.jobs[name].ticket != config.ticket:
            self.world.broken.append(f"{name} gets the ticket of another")
        if self.world.tell_fails:
            raise PassingBackendError("its file is away")
        self.world.addressed[name] = config.epoch

    def cancel(self, names: Sequence[str], grace_s: float) -> None:
        self.calls += 1
        world = self.world
        for name in names:
            world.check_cancel(name)
        if world.stuck & set(names):
            raise world.cancel_fault(f"cannot cancel {sorted(world.stuck & set(names))[0]}")
        for name in names:
            job = world.jobs.get(name)
            if job is not None and job.lives and world.now >= job.listed_at:
                job.state, job.gone = S.ENDED, Gone.CANCELLED
                if world.forgets:
                    del world.jobs[name]


class _Turns(Turns):
    """Those of a head that may die within a call."""

    world: AnyScheduler

    def _ask(self, *arguments: Any) -> Any:
        fault = super()._ask(*arguments)
        if self.world.dies:
            self.world.dies = False
            raise _Dies
        return fault


class _Pool:
    """Serves the processes without a thread."""

    def __init__(self, bounds: Bounds) -> None:
        self.lock = threading.Condition()
        self.bounds = bounds

    def wake(self) -> None: ...

    def hangs(self) -> str:
        return ""

    def wait_for(self, process: AllocationProcess, until: float) -> None: ...


class AnyScheduler(RuleBasedStateMachine):
    """One service of three workers, and its scheduler."""

    @initialize(
        least=st.integers(0, 3),
        limit_s=st.sampled_from([float("inf"), 300.0]),
        most=st.sampled_from([1, 2, 100]),
    )
    def begin(self, least: int, limit_s: float, most: int) -> None:
        """Nothing there, and the first head."""
        logging.getLogger("bequeath.backends.allocations").setLevel(logging.CRITICAL)
        self.records: dict[Path, Incarnation] = {}  # as if on disk
        self.patches = ExitStack()
        self.folder = Path(self.patches.enter_context(TemporaryDirectory()))
        for name, instead in (("read", self.records.get), ("write", self.records.__setitem__)):
            self.patches.enter_context(mock.patch.object(held, f"{name}_incarnation", instead))
        self.now = 1000.0
        self.most = most  # orders in one request
        self.jobs: dict[str, _Job] = {}
        self.condemned: dict[str, float] = {}  # when somebody wanted it to end first
        self.addressed: dict[str, int] = {}
        self.submit_faults: list[tuple[BaseException | None, bool]] = []
        self.look_faults: list[Exception] = []
        self.cancel_fault: type[PassingBackendError | PermanentBackendError] = PassingBackendError
        self.tell_fails = self.forgets = self.dies = False
        self.stuck: set[str] = set()
        self.lag_s, self.first = 0.0, S.RUNNING
        self.load = Load(10, True)
        self.bounds = Bounds(least, 3, idle_s=20.0, limit_s=limit_s)
        self.epoch = 0
        self.broken: list[str] = []  # what a call has shown: its own errors would be the platform's
        self.next_head()

    def next_head(self) -> None:
        self.epoch += 1
        self.scheduler = _Scheduler(self)
        pool = _Pool(self.bounds)
        self.processes = [
            AllocationProcess(
                pool,
                worker,
                self.folder / worker,
                "lab",
                load=lambda: self.load,
                clock=lambda: self.now,
                wall=lambda: self.now,
            )
            for worker in WORKERS
        ]
        self.turns = _Turns(
            lambda: self.scheduler,
            "lab",
            self.bounds,
            self.processes,
            pool.lock,
            leads=lambda: True,
            clock=lambda: self.now,
        )
        self.turns.world = self
        for process in self.processes:
            self.ensure(process)

    def ensure(self, process: AllocationProcess) -> None:
        process.ensure(replace(CONFIG, worker=process.place, epoch=self.epoch))

    # -- promises ----------------------------------------------------------------------------------

    def check_order(self, worker: str, name: str) -> None:
        """Nothing else of this worker lives, but for what must have ended for want of a head."""
        others = [each for each, job in self.jobs.items() if job.worker == worker and job.lives]
        for other in others:
            if other == name:
                continue
            fenced_at = self.condemned.get(other, math.inf) + HEAD_GRACE_S + UNSEEN_S
            if self.now < fenced_at:
                self.broken.append(f"{name} is ordered, and {other} lives")
        if self.stopping:
            self.broken.append(f"{name} is ordered while all ends")

    def check_cancel(self, name: str) -> None:
        """It was to end, or nobody owns it."""
        for process in self.processes:
            if process.name == name and not process._held.is_condemned:
                self.broken.append(f"{name} is cancelled, and was wanted")

    stopping: frozenset[str] = frozenset()

    @contextmanager
    def noting(self) -> Iterator[None]:
        yield
        for process in self.processes:
            if process._held.is_condemned and process.name is not None:
                self.condemned.setdefault(process.name, self.now)

    def one_turn(self) -> None:
        """A turn of the thread, and a look of the engine."""
        before = self.scheduler.calls
        try:
            with self.noting():
                until = self.turns.turn()
        except _Dies:
            self.next_head()
            until = self.now
        assert self.broken == []
        names = len(self.jobs) + len(WORKERS)
        assert self.scheduler.calls - before <= 1 + names + 2 * MOST_FAILURES + len(WORKERS)
        assert until >= self.now or self.stopping, "it would turn for ever"
        for process in self.processes:
            self.check_text(process)
            with self.noting():
                loss = process.look(0.0)
                if loss is not None:
                    assert loss.reason
                    process.give_up()
                    if not self.stopping:
                        self.ensure(process)

    def check_text(self, process: AllocationProcess) -> None:
        """Whoever waits knows why, unless nobody needs it."""
        waiting = process.waiting()
        if waiting is None or self.bounds.least < len(WORKERS) or self.stopping:
            return
        assert waiting.reason, process.place

    def agents(self) -> list[_Job]:
        """Those in which an agent of ours runs."""
        return [each for each in self.jobs.values() if each.state is S.RUNNING and each.ticket]

    # -- what may happen -------------------------------------------------------------------------

    @invariant()
    def thread_goes_on(self) -> None:
        """Whatever else happens."""
        if hasattr(self, "patches"):
            self.now += 2.5
            self.one_turn()

    @rule(seconds=st.sampled_from([0.0, 10.0, 30.0, 61.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        """More of it than usual."""
        self.now += seconds

    @rule(kind=st.integers(0, 7), times=st.integers(1, 3))
    def orders_fail(self, kind: int, times: int) -> None:
        """In all ways: for certain, or taken all the same; the head may die of it. The next order
        is soon, since what is there ends."""
        fault: tuple[BaseException, bool] = (
            (PassingBackendError("busy"), False),
            (PassingBackendError("500"), True),
            (PermanentBackendError("no such partition"), False),
            (FileNotFoundError(2, "No such file or directory", "sbatch"), False),
            (KeyError("JobID"), True),
            (KeyError("JobID"), False),
            (_Dies(), True),
            (_Dies(), False),
        )[kind]
        self.submit_faults = [fault] * times
        for job in self.jobs.values():
            job.state, job.gone = S.ENDED, Gone.PREEMPTED
        self.now += 61.0

    @rule(
        fault=st.sampled_from([PassingBackendError, PermanentBackendError, KeyError]),
        times=st.integers(1, 3),
    )
    def looks_fail(self, fault: type[Exception], times: int) -> None:
        """For a while."""
        self.look_faults = [fault("it does not answer")] * times

    @rule(
        lag_s=st.sampled_from([0.0, 0.0, 3.0, UNSEEN_S - 1.0]),
        forgets=st.booleans(),
        first=st.sampled_from([S.WAITING, S.RUNNING, S.RUNNING]),
    )
    def scheduler_changes(self, lag_s: float, forgets: bool, first: AllocationState) -> None:
        """What is ordered from now on is listed later, or runs at once; what is cancelled is listed
        no more."""
        self.lag_s, self.forgets, self.first = lag_s, forgets, first

    @rule(fails=st.booleans())
    def telling_fails(self, fails: bool) -> None:
        """From now on, or no more."""
        self.tell_fails = fails

    @rule(which=st.integers(0, 3), passing=st.booleans())
    def some_cannot_be_cancelled(self, which: int, passing: bool) -> None:
        """Of those that are there; nobody else is harmed by it."""
        self.stuck = {name for name, job in self.jobs.items() if job.lives}
        self.stuck = {name for name in self.stuck if name.startswith(f"lab-q-{which}") or not which}
        self.cancel_fault = PassingBackendError if passing else PermanentBackendError

    @rule()
    def all_can_be_cancelled(self) -> None:
        """Somebody has mended it."""
        self.stuck = set()

    @rule(
        which=PICK,
        state=st.sampled_from([*S, S.RUNNING, S.ENDED, S.ENDED, S.ENDED]),
        gone=st.sampled_from(Gone),
    )
    @precondition(lambda self: any(job.lives for job in self.jobs.values()))
    def scheduler_goes_on(self, which: int, state: AllocationState, gone: Gone) -> None:
        """With one of its allocations, in any order."""
        living = [job for job in self.jobs.values() if job.lives]
        job = living[which % len(living)]
        job.state, job.gone = state, gone if state is S.ENDED else None
        job.listed_at = min(job.listed_at, self.now)

    @rule(which=PICK)
    @precondition(lambda self: self.agents())
    def agent_says_hello(self, which: int) -> None:
        """Whoever is not believed leaves."""
        job = self.agents()[which % len(self.agents())]
        process = self.processes[WORKERS.index(job.worker)]
        if process.expects(1, job.ticket) is False:
            job.state, job.gone = S.ENDED, Gone.FINISHED

    @rule(which=PICK, grace_s=st.sampled_from([0.0, 3.0, 30.0]))
    def engine_gives_up(self, which: int, grace_s: float) -> None:
        """One whose agent is silent, and asks again."""
        process = self.processes[which % len(WORKERS)]
        with self.noting():
            process.give_up(grace_s)
        self.ensure(process)

    @rule(load=st.sampled_from([Load(0, False), Load(1, True), Load(10, True), Load(10, True)]))
    def load_changes(self, load: Load) -> None:
        """More is queued, or less."""
        self.load = load

    @rule(number=st.integers(1, 5))
    def stray_appears(self, number: int) -> None:
        """Of a worker that the file does not have."""
        name = f"lab-q-9-{number}"
        self.jobs.setdefault(name, _Job("q-9", "", self.now, S.RUNNING))

    @rule(loses_record=st.booleans())
    def head_dies(self, loses_record: bool) -> None:
        """And the next one begins; a disk may have lost what was written last."""
        if loses_record and not any(
            job.lives and job.worker == "q-1" for job in self.jobs.values()
        ):
            self.records.pop(self.folder / "q-1", None)
        self.next_head()

    # -- the end -----------------------------------------------------------------------------------

    def teardown(self) -> None:
        """All ends, once the scheduler answers again: nothing is left there, and nobody waits for
        longer than lists may lag."""
        if not hasattr(self, "patches"):
            return
        try:
            self.submit_faults, self.look_faults, self.stuck = [], [], set()
            self.lag_s = 0.0
            self.stopping = frozenset(WORKERS)
            strays = {name for name, job in self.jobs.items() if job.worker == "q-9"}
            for process in self.processes:
                process.end(self.now + 20.0)
            for _ in range(300):
                if all(process.is_over for process in self.processes):
                    break
                self.one_turn()
                self.now += 1.0
            assert all(process.is_over for process in self.processes)
            self.turns.close()
            left = [name for name, job in self.jobs.items() if job.lives and name not in strays]
            assert left == []
        finally:
            self.patches.close()


TestAnyScheduler = AnyScheduler.TestCase
TestAnyScheduler.settings = settings(max_examples=some_of(60), stateful_step_count=40)
