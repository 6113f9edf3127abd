"""The tuner host under a schedule: its real parts, a real core as its head, trials by dice.

What has no part in who wakes whom is replaced: the socket and the process's end. See
:mod:`tests.support.schedules`.

Whatever the author does, and whoever runs when: what the head has of each request is what that
request does (:meth:`ScheduledHost._judge_beliefs`), a state is taken only while nobody is in the
author's code, and in the end nobody is left in a wait.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

from dispatcher.core import State, apply, check, new_state
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import OVER, EndReason, Phase
from dispatcher.core.settings import Settings, TunerErrorPolicy
from dispatcher.ports import JournalEntry, Snapshot
from dispatcher.store.replay.history import read_past
from dispatcher.tuner_host import (
    delivery,
    foreign_waits,
    gate,
    host,
    load,
    request_threads,
    requests,
    restore,
    run_token,
    serving,
    snapshots,
    wait,
)
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.messages import Note
from dispatcher.tuner_host.signatures import TunerCalls
from tests.support.memory_journal import MemoryJournal
from tests.support.schedules import Schedule, Task
from trial_runtime.endpoint import Endpoint
from tuners import NoMoreTrialError, ParentFailed, Tuner
from tuners.errors import (
    CycleRefused,
    SelfWait,
    UnknownParent,
    VersionTimeout,
    WaitCancelled,
    WaitTimeout,
)

#: Between whose lines threads change.
_PARTS = (
    delivery,
    run_token,
    foreign_waits,
    gate,
    host,
    request_threads,
    requests,
    restore,
    serving,
    snapshots,
    wait,
)
TRACED = (*(str(module.__file__) for module in _PARTS), __file__)

_HOST = WorkerId("local")

#: Seconds of the schedule in which something must happen.
QUIET_S = 2000.0

#: What a request has done for so long, and through so many looks, the head knows.
KNOWN_S, KNOWN_LOOKS = 6.0, 8

#: A state above this is not kept.
MAX_STATE_BYTES = 4000

#: A shared store of which trials publish versions.
STORE = "omega"


class Author(Tuner):  # type: ignore[misc]
    """An author's tuner: asks to be asked later, waits, and notes what it was told. Asked again in
    another process it answers otherwise, as one does that draws at random."""

    def __init__(self, seed: int, life: int, ran_with: dict[int, int], schedule: Schedule) -> None:
        self._seed = seed
        self._life = life
        self._ran_with = ran_with
        self._schedule = schedule
        self._refused: set[int] = set()
        self.at_work: set[int] = set()  # requests in this code, and in no wait of the gate's
        #: What a request does that may take its time, and since when.
        self.doing: dict[int, tuple[str, float]] = {}
        self.met: Counter[str] = Counter()
        self.generated: list[int] = []
        self.results: list[int] = []
        self.ends: list[int] = []
        self.wrong: list[str] = []

    def _dice(self, what: str, trial: int) -> float:
        return random.Random(f"{what} {self._seed} {trial}").random()

    def update_search_space(self, search_space: Any) -> None: ...

    def generate_parameters(self, parameter_id: int, **_: Any) -> dict[str, Any]:
        refuses = self._dice("refuses", parameter_id)
        if refuses < 0.5 and parameter_id not in self._refused:
            self._refused.add(parameter_id)
            if refuses < 0.35:  # meanwhile a result comes in, so that it is asked again at once
                self._wait(parameter_id, "before")
            raise NoMoreTrialError
        if self._dice("waits", parameter_id) < 0.7:
            self._wait(parameter_id, "after")
        self.generated.append(parameter_id)
        return {"n": parameter_id, "life": self._life}

    def _wait(self, trial: int, what: str) -> None:
        others = (int(self._dice(what, trial) * (trial + 3)), max(0, trial - 1))
        try:
            self.wait_for(others[0])
            self.wait_for(*others, mode="any")
        except (ParentFailed, UnknownParent, CycleRefused, SelfWait):
            return

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **_: Any
    ) -> None:
        self.results.append(parameter_id)
        told, ran = (parameters["n"], parameters["life"]), self._ran_with.get(parameter_id)
        if told != (parameter_id, ran):
            self.wrong.append(f"the result of {parameter_id}, run with {ran}, came with {told}")

    def trial_end(self, parameter_id: int, success: bool, **_: Any) -> None:
        self.ends.append(parameter_id)


class RestlessAuthor(Author):
    """One that does whatever an author may: waits with a limit, for trials and for versions,
    stands still in something of its own before and after, and goes on once it was cancelled."""

    def generate_parameters(self, parameter_id: int, **_: Any) -> dict[str, Any]:
        self.at_work.add(parameter_id)
        try:
            for step in range(int(self._dice("steps", parameter_id) * 6)):
                try:
                    self._step(parameter_id, step)
                except WaitCancelled:
                    self.met["cancelled"] += 1
                    if self._dice(f"stubborn {step}", parameter_id) < 0.5:
                        raise
                self.generated.append(-1)  # a change that is half done, for a while
                self.generated.remove(-1)
            self.generated.append(parameter_id)
            return {"n": parameter_id, "life": self._life}
        finally:
            self.at_work.discard(parameter_id)

    def _step(self, trial: int, step: int) -> None:
        what = self._dice(f"what {step}", trial)
        limits = (None, 0.0, 0.004, 0.3, 1.5)
        limit = limits[int(self._dice(f"limit {step}", trial) * len(limits))]
        others = (int(self._dice(f"whom {step}", trial) * (trial + 3)), max(0, trial - 1))
        # Who stands still keeps a state from being taken.
        sleepy = self._dice("sleepy", 0) < 0.5
        if sleepy and self._dice(f"before {step}", trial) < 0.4:
            self._stand(trial, 20.0)
        if self._dice(f"stands {step}", trial) < (0.2 if sleepy else 0.06):
            self._stand(trial, (0.03, 0.4, 20.0)[int(what * 3)])
        elif what < 0.4:
            self._blocked(trial, lambda: self.wait_for(others[0], timeout=limit))
        elif what < 0.65:
            self._blocked(trial, lambda: self.wait_for(*others, mode="any", timeout=limit))
        elif what < 0.8:
            limit = 2.0 if limit is None else limit  # nobody may ever publish so many
            number = 1 + int(self._dice(f"version {step}", trial) * 4)
            self._blocked(trial, lambda: self.wait_for_version(STORE, number, timeout=limit))
        else:
            self._blocked(trial, lambda: self.wait_for_version(STORE, by=others[0], timeout=limit))

    def _stand(self, trial: int, seconds: float) -> None:
        """In an Event, a queue, a sleep: something that is not ours."""
        self.doing[trial] = ("stands", self._schedule.now)
        self._schedule.sleep(seconds)
        del self.doing[trial]

    def _blocked(self, trial: int, wait_: Any) -> None:
        self.doing[trial] = ("waits", self._schedule.now)
        self.at_work.discard(trial)
        try:
            wait_()
        except (
            ParentFailed,
            UnknownParent,
            CycleRefused,
            SelfWait,
            WaitTimeout,
            VersionTimeout,
        ) as error:
            self.met[type(error).__name__] += 1
        finally:
            self.at_work.add(trial)
            del self.doing[trial]


class _Keeping(Author):
    """One with a state of its own."""

    def state(self) -> Any:
        if self.at_work:
            self.wrong.append(f"a state is taken while {self.at_work} are in the author's code")
        return {"generated": self.generated, "results": self.results, "ends": self.ends}

    def restore(self, state: dict[str, Any]) -> None:
        self.generated = list(state["generated"])
        self.results, self.ends = list(state["results"]), list(state["ends"])

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        self.generated.append(parameter_id)


class KeepingAuthor(_Keeping): ...


class RestlessKeepingAuthor(RestlessAuthor, _Keeping):
    """One whose state is not always there, and in the end may be none that is kept."""

    def state(self) -> Any:
        found = super().state()
        times = len(self.ends)
        dice = self._dice(f"state {times}", self._life)
        self.met["state"] += 1
        if dice < 0.3:
            self.met["no state"] += 1
            return None
        if dice < 0.7:
            return found
        self.met["a state that cannot be kept"] += 1
        if dice < 0.8:
            raise ValueError("not now")
        return {**found, "bulk": "x" * MAX_STATE_BYTES if dice < 0.9 else {1}}  # which is no JSON


class _Said:
    """The outbox, without the descriptor that wakes a socket's loop."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._messages: deque[object] = deque()

    def say(self, message: object) -> None:
        self._messages.append(message)
        self._schedule.spoke()

    say_later = say

    def take(self) -> list[object]:
        return [self._messages.popleft() for _ in range(len(self._messages))]


class _Loop:
    """In place of the loop around the socket: what is said in a crowd is said."""

    def __init__(self, _socket: object, outbox: _Said, **_: object) -> None:
        self.say_in_crowd = outbox.say
        self.make_way = lambda: None


class ScheduledHost:
    """An experiment of a few trials, led by a real core in the calling thread."""

    def __init__(
        self, seed: int, *, keeps_state: bool, restarts: int = 0, restless: bool = False
    ) -> None:
        self.seed = seed
        self._restless = restless
        self._stops = 4 if restless else 0  # more, and a search that stands still is stopped away
        dice = random.Random(f"schedule {seed}")
        ranked = dice.random() < 0.75
        switches = dice.choice((0.005, 0.02, 0.06) if ranked else (0.05, 0.3))
        self.schedule = Schedule(seed, TRACED, switches=switches, ranked=ranked)
        self.settings = Settings(
            slots=3,
            lookahead=6,
            max_trials=14,
            on_tuner_error=TunerErrorPolicy.FAIL,
            stall_timeout_s=1e9,
        )
        self.state: State = new_state(self.settings)
        self.journal = MemoryJournal()
        self.ran_with: dict[int, int] = {}
        self.proposed: set[int] = set()  # said, and heard
        self.wrong: list[str] = []
        self.notes: list[str] = []
        if restless:
            self._kind = RestlessKeepingAuthor if keeps_state else RestlessAuthor
        else:
            self._kind = KeepingAuthor if keeps_state else Author
        self._author: Author
        #: Request, what it does, since when, what the head takes it for → since when, and looks.
        self._beliefs: dict[tuple[int, str, float, str], tuple[float, int]] = {}
        self.met: Counter[str] = Counter()
        self._restarts = restarts
        self._lives = 0
        self._due: list[a.Action] = []
        self._running: list[a.StartAttempt] = []
        self._moved_at = 0.0
        self._process: list[Task] = []

    def run(self) -> list[str]:
        """What went wrong, a sentence each."""
        with self._installed():
            before = sys.gettrace()
            sys.settrace(self.schedule.trace)
            try:
                self._say(e.ExperimentCreated(self.settings), e.HeadStarted(1))
                self._say(e.WorkerJoined(_HOST, 3))
                self._launch()
                while self.state.phase not in OVER:
                    self._turn()
                    if self.schedule.now - self._moved_at > QUIET_S:
                        return [*self.wrong, self._stuck()]
                if not self.wrong and self.state.phase is Phase.COMPLETED:
                    self._end_all()
            finally:
                sys.settrace(before)
                self.schedule.kill(self.schedule.others())
        wrong = [*self.wrong, *self._author.wrong]
        if self.state.phase is not Phase.COMPLETED:
            wrong.append(f"it {self.state.phase}: {self.state.phase_reason}")
        for what in ("generated", "results", "ends"):
            told = getattr(self._author, what)
            if len(told) != len(set(told)):
                wrong.append(f"the tuner has {what} twice: {told}")
        return wrong

    def _stuck(self) -> str:
        return (
            f"nothing goes on: open {list(self.state.open)}, blocked {list(self.state.blocked)}, "
            f"the host's waits {sorted(self._host.gate.blocked())}, threads "
            f"{[task.name for task in self.schedule.others()]}"
        )

    def _end_all(self) -> None:
        """Nobody is left in the author's code or in a wait once the experiment is over."""
        over, self._restarts = self.schedule.now, 0
        while self._host.run_token.is_running() or self._host.gate.blocked():
            self._turn()
            if self.schedule.now - over > QUIET_S:
                self.wrong.append(f"it is over, and {self._stuck()}")
                return

    # ---- the head ------------------------------------------------------------------------

    def _turn(self) -> None:
        """What the head and the host's I/O thread do, one after another."""
        rng = self.schedule.rng
        for word in self._host.outbox.take():
            self._hear(word)
        if self._running and rng.random() < 0.3:
            self._end(self._running.pop(rng.randrange(len(self._running))))
        due, self._due = self._due, []
        for action in due:
            self._carry_out(action)
        self._host.look()
        if self._host.ready:
            self._judge_beliefs()
        if self._stops and rng.random() < 0.02:
            self._stop_one()
        if self._restarts and rng.random() < 0.01:
            self._restarts -= 1
            self._die()
        idle = self.schedule.now - self._moved_at
        self.schedule.sleep(max(rng.choice((0.0005, 0.001, 0.004)), idle / 10))

    def _stop_one(self) -> None:
        """A user does not want a trial that is being proposed."""
        asked = [*self.state.open, *self.state.blocked]
        if asked and self.state.phase not in OVER:
            self._stops -= 1
            self._say(e.TrialStopRequested(self.schedule.rng.choice(asked), EndReason.KILLED))
            self.met["stopped"] += 1

    def _judge_beliefs(self) -> None:
        """What a request has done for long enough is what the head has of it."""
        now, state = self.schedule.now, self.state
        before, self._beliefs = self._beliefs, {}
        for number, (doing, since) in list(self._author.doing.items()):
            trial = TrialId(number)
            if trial not in state.open and trial not in state.blocked:
                continue  # a user has stopped it
            mode = state.waits[trial].mode if trial in state.blocked else ""
            believed = "stands" if mode == "foreign" else "waits" if mode else "computes"
            key = (number, doing, since, believed)
            began, looks = before.get(key, (now, 0))
            self._beliefs[key] = began, looks + 1
            if now - began < KNOWN_S or looks < KNOWN_LOOKS:
                continue
            self.met[f"{doing} for long"] += 1
            if believed != doing:
                self.wrong.append(f"request {number} {doing}, and for the head it {believed}")

    def _hear(self, word: object) -> None:
        if isinstance(word, Note):
            self.notes.append(word.text)
        elif isinstance(word, e.TunerStateTaken):
            self._judge_state(json.loads(word.state))
            self.journal.save_snapshot(Snapshot(self.journal.last, word.state))
        else:
            self._say(word)  # type: ignore[arg-type]

    def _judge_state(self, state: dict[str, Any]) -> None:
        """It is exact as of what was said before it: each proposal that it has was said."""
        ahead = set(state["generated"]) - self.proposed
        if ahead:
            self.wrong.append(f"a state has the proposals {ahead}, which were not said yet")

    def _say(self, *events: e.Event) -> None:
        for event in events:
            step = apply(self.state, event, 1000.0 + self.schedule.now)
            check(self.state)
            if isinstance(event, e.Proposed):
                self.proposed.add(int(event.trial))
                if step.counted:
                    self.ran_with[int(event.trial)] = json.loads(event.parameters)["life"]
            self.journal.append([JournalEntry(0.0, event, step.counted)], (), durable=True)
            self._due.extend(step.actions)
            self._moved_at = self.schedule.now

    def _carry_out(self, action: a.Action) -> None:
        if isinstance(action, a.LaunchTuner):
            self._launch()
        elif isinstance(action, a.TunerAction):
            self._host.take(action)
        elif isinstance(action, a.StartAttempt):
            self._running.append(action)

    def _end(self, start: a.StartAttempt) -> None:
        trial, attempt = TrialId(start.trial), start.attempt
        if self._restless and self.schedule.rng.random() < 0.4:
            versions, path = self.state.stores.get(STORE, ()), f"{STORE}/{trial}.{attempt}-0"
            self._say(e.VersionOffered(trial, attempt, 1, STORE, len(versions), path, "ab", 1))
        self._say(e.AttemptStarted(trial, attempt), e.FinalReported(trial, attempt, 1, "0.5"))
        self._say(e.AttemptEnded(trial, attempt, EndReason.FINISHED))

    # ---- the process ---------------------------------------------------------------------

    def _launch(self) -> None:
        self._lives += 1
        config = TunerHostConfig(
            endpoint=Endpoint("ipc://nowhere"), weights_root="/w", snapshot_every=1
        )
        snapshot = self.journal.latest_snapshot()
        calls: list[list[Any]] = []
        if self._lives > 1:
            after = snapshot.number if snapshot is not None else 0
            calls = read_past(self.journal, calls_after=after).calls
        past = restore.RestoreFile(snapshot.state if snapshot is not None else None, calls)
        clock = self.schedule.clock
        made = self._host = host.Host(
            config, clock=clock, ran=lambda one: self.schedule.ran_ns(one.thread)
        )
        self._author = self._kind(self.seed, self._lives, self.ran_with, self.schedule)
        self._author.met = self.met
        load.install_gate(self._author, made.gate, None, made.gate.newest)
        served = made.serving_of(TunerCalls(self._author))

        def serve() -> None:
            if past.calls or past.state is not None:
                served.repeat_past(past)
            made.serve(served)

        self.schedule.start("tuner", serve)

    def _die(self) -> None:
        self.schedule.kill(self.schedule.others())
        self.wrong.extend(self._author.wrong)
        self._due = [x for x in self._due if not isinstance(x, a.TunerAction)]
        self._host.outbox.take()
        self._say(e.TunerHostLost("gone"))

    @contextmanager
    def _installed(self) -> Iterator[None]:
        """The host's modules find what blocks, what tells the time and what starts threads here."""
        schedule = self.schedule
        threads = SimpleNamespace(
            **{**vars(threading), "Lock": schedule.lock, "Event": schedule.event}
        )
        run, start = request_threads.RequestThread.run, request_threads.RequestThread.start

        def expected(worker: Any) -> None:
            worker.task = Task("request")
            start(worker)
            schedule.has_begun(worker.task)

        def under_it(worker: Any) -> None:
            schedule.carry_out(worker.task, lambda: run(worker))

        with ExitStack() as stack:

            def put(place: object, name: str, what: object) -> None:
                stack.enter_context(mock.patch.object(place, name, what))

            for module in (gate, run_token, request_threads, restore):
                put(module, "threading", threads)
            for module in (wait, request_threads):
                put(module, "allocate_lock", schedule.lock)
            put(delivery, "SimpleQueue", schedule.queue)
            put(snapshots, "MAX_STATE_BYTES", MAX_STATE_BYTES)
            put(restore, "time", SimpleNamespace(monotonic=schedule.clock))
            put(request_threads.RequestThread, "start", expected)
            put(request_threads.RequestThread, "run", under_it)
            put(host, "Outbox", partial(_Said, schedule))
            put(host, "IoLoop", _Loop)
            put(host, "connect", lambda *_: None)
            put(host, "zmq", SimpleNamespace(Context=lambda: None))
            put(host, "log", lambda _: None)
            yield
