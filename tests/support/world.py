"""A world for the engine to live in: clock, peers, disk, users and accidents, all from one seed.

The engine, the core, the codec, the desk, the agents' protocol and what restores a tuner are
real; what they talk to is here. Time jumps to the next thing that happens. See
:mod:`tests.support.agents` and :mod:`tests.support.tuner_model` for the peers,
:mod:`tests.support.odds` for what goes wrong.
"""

from __future__ import annotations

import heapq
import itertools
import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from dispatcher.channel import PeerMessage
from dispatcher.control.messages import ControlRequest, Reply, encoder, reply_decoder
from dispatcher.control.server import ControlServer
from dispatcher.core import State, outstanding
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import OVER, AttemptState, Move, Phase
from dispatcher.core.settings import QUARANTINE_MAX_S, Settings, StallPolicy
from dispatcher.core.why import Cause, why
from dispatcher.engine import Engine
from dispatcher.errors import StoreError
from dispatcher.head.beginning import begin_epoch
from dispatcher.head.clock import SteadyClock
from dispatcher.head.ordering import load_of
from dispatcher.platforms.allocations.process import Load
from dispatcher.ports import Journal, JournalEntry, RefusedEvent
from dispatcher.store import SqliteJournal
from dispatcher.store.compaction import Compaction
from dispatcher.store.replay.folding import fold_at_start, read_whole_past
from dispatcher.store.replay.history import Past
from dispatcher.store.replay.restoring import RestoringTuner
from tests.support.agents import Host, SimBackend
from tests.support.checker import Harm, Order, Ordered, Witnesses, check_journal
from tests.support.disk import Disk
from tests.support.earned import is_earned, unearned
from tests.support.fate import CHANGES, NEWER_RULES, Fate, HeadCrash
from tests.support.in_a_row import unwarranted
from tests.support.memory_journal import MemoryCompaction, MemoryJournal
from tests.support.odds import Case
from tests.support.replaying import differences
from tests.support.sim_agent import SimAgent
from tests.support.standstill import Standstill
from tests.support.timely import overslept
from tests.support.tuner_model import TunerModel
from tests.support.weight_files import WeightFiles
from trial_runtime import facts

#: Turns after which a run is taken for one that will never end.
TURNS = 60_000

#: Seconds without a fact after which nothing will ever happen: longer than any back-off, stall
#: time-out, lease, cut, or time for which a worker is left out.
QUIET_S = QUARANTINE_MAX_S + 400.0

#: Rows after which the beginning of a journal that is folded at all becomes a state.
FOLD_ROWS = 40

#: What is asked for and what is done about it may be so far apart (seconds).
A_MOMENT_S = 1.0

STOPPING = AttemptState.STOPPING

#: Heads after which an experiment is left as it is.
HEADS = 12

#: Where the few files of a world lie: in memory, where the machine offers that.
_SHM = Path("/dev/shm")

#: What ends an experiment under ``max_duration_s``.
OUT_OF_TIME = "maxExperimentDuration has passed"

_REVIEW = e.StoresReviewed()


class Stuck(AssertionError):
    """Nothing will ever happen again, and the experiment is not over."""


class World:
    """Everything outside the head. ``run`` leads the experiment to its end, heads and all."""

    def __init__(self, case: Case, journal: Journal) -> None:
        self.case = case
        self.rng = random.Random(case.seed)
        self.odds = case.odds
        self.now = 1_000_000.0  # of a clock that nobody steps
        self.skew = 0.0  # of the wall's
        self._clock: Callable[[], float] = lambda: self.now
        self._ahead = 0.0  # by how much the clock of the head that leads is
        self.moved_at = self.now
        self.orders: list[Ordered] = []
        self.safe_words: list[Any] = []  # of agents, acknowledged
        self.safe_wishes: list[ControlRequest] = []  # of users, answered
        self.faults: list[str] = []
        self.notes: list[tuple[int, float, str]] = []  # (newest row then, when, what)
        self.engine: Engine | None = None
        self.epoch = 0
        self._asked: dict[int, ControlRequest] = {}
        self._agenda: list[tuple[float, int, Callable[[], list[PeerMessage] | None]]] = []
        self._tie = itertools.count()
        self._turns = 0
        self._crash_in = 0
        self._crash_at_commit = 0
        self._phases = (Phase.RUNNING, Phase.RUNNING)  # after the newest commits
        self._aimed = False
        self.harms: list[Harm] = []
        self.files: dict[str, str] = {}  # save path → digest of what lies there
        self.met: set[str] = set()  # kinds of events that reached the core
        self.moves: list[Move] = []  # of all trials, as heads decided them
        self.values: dict[str, set[str]] = {}  # of settings: all that were in force
        self._given: dict[str, set[tuple[int, int]]] = {}  # attempts, by worker
        self._decided: set[tuple[int, int]] = set()  # attempts, before the newest commit
        self._just_decided: set[tuple[int, int]] = set()
        self._lost_at: dict[tuple[int, int], float] = {}
        self._limits: set[float] = set()  # to the duration, that ever were in force
        self._led_s = 0.0  # by heads that are gone
        self._leads_since = 0.0
        self._folder = tempfile.TemporaryDirectory(dir=_SHM if _SHM.is_dir() else None)
        folder = Path(self._folder.name)
        self.restore_file = folder / "restore"
        self.weights = WeightFiles(self, folder) if case.odds.weight_files else None
        self.store = journal
        self.disk = Disk(self, journal)
        self.standstill = Standstill(self)
        self.tuner = TunerModel(self)
        self.hosts = {
            n: Host(self, n, slots, folder, case.offers.get(n)) for n, slots in case.workers.items()
        }
        self._backends: dict[str, SimBackend] = {}

    # -- time ----------------------------------------------------------------------------

    def later(self, delay: float, do: Callable[[], list[PeerMessage] | None]) -> None:
        """Something that happens ``delay`` seconds from now; ties go first in, first out."""
        heapq.heappush(self._agenda, (self.now + delay, next(self._tie), do))

    def at(self, moment: float, do: Callable[[], list[PeerMessage] | None]) -> None:
        """Something that happens at that moment, or now if it is over."""
        heapq.heappush(self._agenda, (max(moment, self.now), next(self._tie), do))

    def poll(self, timeout_s: float) -> list[PeerMessage]:
        """What the router hands out: jump to what comes next, and gather what is due by then."""
        self._turns += 1
        assert self.engine is not None
        if self._turns > TURNS:
            raise Stuck("the experiment does not end")
        if self.now - self.moved_at > QUIET_S:
            state = self.engine.state
            raise Stuck(f"nothing happens any more: {state.phase}, {why(state, state.now)}")
        if self._turns % 200 == 0:
            self._wake_up_call(self.engine.state)
        if self._turns % 500 == 0:
            self._look(self.engine.state)
        self.standstill.look()
        if not self._agenda or self._agenda[0][0] > self.now + timeout_s:
            self.now += max(timeout_s, 1e-4)
            return []
        self.now = max(self.now, self._agenda[0][0])
        until = self.now + self.rng.choice((0.0, 0.0, 0.05, 0.5))
        said: list[PeerMessage] = []
        while self._agenda and self._agenda[0][0] <= until:
            moment, _, do = heapq.heappop(self._agenda)
            self.now = max(self.now, moment)
            said.extend(do() or ())
        return self._shoot(said) if self._aimed else said

    def aim_at_what_was_heard(self) -> None:
        """When an agent's words come in next, a user's request comes with them, and the head ends
        somewhere between the two."""
        self._aimed = True

    def _shoot(self, said: list[PeerMessage]) -> list[PeerMessage]:
        assert self.engine is not None
        state = self.engine.state
        speakers = {each.owner for each in said}
        # An order to whoever has just spoken: an acknowledgement would go with it.
        near = [t for t in state.running if state.trials[t].worker in speakers]
        if not near:
            return said
        self._aimed = False
        if self.rng.random() < 0.5:
            self._crash_at_commit = 2  # what was received was not applied by then
        else:
            self.kill_head(after_steps=self.rng.randint(1, 10))
        return said + self.ask("stop_trial", trial=int(self.rng.choice(near)))

    def harm(self, worker: str) -> None:
        """Something befalls a worker: what it runs may be lost from now on."""
        self.harms.append(Harm(self.disk.last, worker))

    def forget_rows(self, last: int) -> None:
        """Rows after that one are gone, and their numbers will be given again: what befell a
        worker then came before all that is written from now on."""
        self.harms = [Harm(min(row, last), worker) for row, worker in self.harms]
        self.notes = [(min(row, last), at, text) for row, at, text in self.notes]

    def note(self, text: str) -> None:
        """A line of the story."""
        self.notes.append((self.disk.last, self.now, text))

    def as_head(self, moment: float) -> float:
        """A moment of this world by the clock of the head that leads."""
        return moment + self._ahead

    def load_of(self, host: Host) -> Load:
        """How much there is to do there, as the head that leads has it."""
        assert self.engine is not None
        return load_of(self.engine.state, self._clock, host.name)

    def reached_wall(self, host: Host) -> None:
        """The place of an agent is taken back at the moment that was known. What is still there was
        asked to go before, unless no head was there that knew."""
        self.note(f"the place of {host.name} has reached its end")
        if self.engine is None:
            return
        state = self.engine.state
        worker, hand_over_s = state.workers.get(WorkerId(host.name)), state.settings.hand_over_s
        offer = None if worker is None or not worker.alive else worker.offer
        if worker is None or offer is None or offer.ends_at is None or not hand_over_s:
            return
        overdue = self.now + self._ahead > offer.ends_at - hand_over_s + A_MOMENT_S
        led = self.now - self._leads_since > hand_over_s + A_MOMENT_S
        stays = [t for t in worker.running if state.trials[t].attempt_state is not STOPPING]
        if overdue and led and stays and state.phase in (Phase.RUNNING, Phase.DRAINING):
            self.faults.append(f"{stays} run in the place of {host.name} until its end")

    def step(self, name: str) -> None:
        """Between two steps of the head: it may end here."""
        if self._crash_at_commit and name == "commit":
            self._crash_at_commit -= 1
            self._crash_in = 0 if self._crash_at_commit else 1
        if self._crash_in:
            self._crash_in -= 1
            if not self._crash_in:
                self.note(f"head {self.epoch} is killed before: {name}")
                raise HeadCrash

    # -- the router's other methods ------------------------------------------------------

    def wake(self) -> None:
        """The engine is awake: it called us."""

    def send(self, _peer: bytes, payload: bytes) -> bool:
        """A reply to a user."""
        self.step("reply")
        reply: Reply = reply_decoder.decode(payload)
        request = self._asked.pop(reply.number)
        if not reply.error:
            self.safe_wishes.append(request)
        return True

    def leave(self, _peer: bytes) -> None:
        """Guests are not remembered."""

    # -- the head's own -------------------------------------------------------------------

    def act(self, action: a.HeadAction) -> None:
        """What leaves the engine for the head."""
        match action:
            case a.GrantRemoval() | a.GrantVersions():
                self.ordered(action)
            case a.ReviewStores():
                assert self.engine is not None
                self.later(self.rng.uniform(0.1, 2.0), partial(self.engine.post, _REVIEW))
            case a.ReportTunerError(text=text) if "was removed: sharedStores" in text:
                self.faults.append(f"what was held or new is gone: {text}")
            case a.ReportStall():
                self._stalled(action)
            case _:
                pass

    def ordered(self, order: Order) -> None:
        """Something leaves the head that the checker should know of."""
        self.orders.append(Ordered(self.disk.before, self.disk.last, order))
        if isinstance(order, a.StartAttempt):
            attempt = (order.trial, order.attempt)
            # What was decided before is asked for again: it may never have been heard of.
            if attempt not in self._decided and self._phases[0] is not Phase.RUNNING:
                self.faults.append(f"{attempt} is begun while the experiment is {self._phases[0]}")
            if attempt not in self._decided:
                self._has_time(order)
            self._given.setdefault(order.worker, set()).add(attempt)

    def _has_time(self, order: a.StartAttempt) -> None:
        """What begins in a place whose end is known has the time that it must have."""
        assert self.engine is not None
        settings, host = self.engine.state.settings, self.hosts[order.worker]
        needed_s = max(settings.longest_trial_s or 0.0, settings.hand_over_s)
        if needed_s and host.ends_at is not None:
            left_s = host.ends_at - self.now
            if left_s < needed_s - A_MOMENT_S:
                name = f"{order.trial}.{order.attempt}"
                self.faults.append(f"{name} begins {left_s:.1f} s before its place ends")

    @property
    def is_patient(self) -> bool:
        """Whether an experiment that stands still is to wait for somebody's help."""
        return self.case.settings.on_stall is StallPolicy.WAIT

    def _stalled(self, stall: a.ReportStall) -> None:
        """A stall was named. Where the experiment is to wait, a user comes to its help."""
        self.note(f"stall, {'certain' if stall.certain else 'suspected'}: {stall.text}")
        assert self.engine is not None
        self.standstill.named(stall)
        if self.is_patient and stall.trials:
            trial = int(self.rng.choice(stall.trials))
            self.later(5.0, lambda: self.ask("stop_trial", trial=trial))

    def committed(self, entries: Sequence[JournalEntry]) -> None:
        """A batch is on the disk."""
        self.standstill.committed()
        if self.engine is not None:
            state = self.engine.state
            self._phases = (self._phases[1], state.phase)
            self._decided |= self._just_decided
            self._just_decided = {(t, state.trials[t].attempt) for t in state.running}
        for entry in entries:
            event = entry.event
            self.met.add(type(event).__name__)
            settings = getattr(event, "settings", None)
            if settings is not None and settings.max_duration_s is not None:
                self._limits.add(settings.max_duration_s)
            if isinstance(event, e.WorkerLost | e.WorkerWaits):
                for attempt in self._given.pop(event.worker, ()):
                    self._lost_at[attempt] = self.now
            elif isinstance(event, e.AttemptEnded):
                for attempts in self._given.values():
                    attempts.discard((event.trial, event.attempt))
            elif isinstance(event, e.WaitStarted | e.Proposed | e.TrialSubmitted):
                self._look_for_cycles(int(getattr(event, "trial", -1)))

    def _look_for_cycles(self, waiter: int) -> None:
        """Each wait that would close a ring is refused: drawn by hand, from what is waited for."""
        if self.engine is None:
            return
        waits = self.engine.state.waits
        seen: set[int] = set()
        front = [waiter]
        while front:
            wait = waits.get(front.pop())  # type: ignore[call-overload]
            for above in wait.parents if wait is not None else ():
                if above == waiter:
                    raise AssertionError(f"request {waiter} waits for itself through {seen}")
                if above not in seen and self.engine.state.trials[above].verdict is None:
                    seen.add(above)
                    front.append(above)

    def began(self, host: Host, agent: SimAgent, order: facts.StartAttempt) -> None:
        """An agent begins an attempt: one that nobody gave up before that agent was there, and
        from the weights that it is told to find."""
        name = f"{order.trial}.{order.attempt}"
        lost = self._lost_at.get((order.trial, order.attempt))
        if lost is not None and lost <= agent.born:
            self.faults.append(f"{host.name} begins {name}, which was lost before it was there")
        there = self.files.get(order.restore_path or "")
        if there is not None and order.restore_digest != there and not self.harms:
            self.faults.append(f"{name} is to find {order.restore_digest}, and {there} lies there")
        if order.save_path is not None:
            self.files.pop(order.save_path, None)

    def stacks(self, stacks: dict[int, str]) -> None:
        """Nobody reads them here."""
        self.met.add(e.StacksReported.__name__)

    def peer_fault(self, owner: str, error: Exception) -> None:
        """No peer of this world says what it may not say, but for one that follows a later
        head; and there is one head at a time here."""
        self.faults.append(f"{owner}: {error}")

    def refused(self, refused: RefusedEvent) -> None:
        """As little; what is refused of the head's own ends it, and is found so."""
        if refused.is_peers_fault:
            self.peer_fault(refused.owner, refused.error)

    # -- what users ask ----------------------------------------------------------------------

    def ask(self, verb: str, **arguments: Any) -> list[PeerMessage]:
        """A request at the desk."""
        request = ControlRequest(next(self._tie), verb, arguments)
        self._asked[request.number] = request
        return [PeerMessage("", b"control:guest", encoder.encode(request))]

    def fresh(self) -> int:
        """A number that nothing else has."""
        return next(self._tie)

    def kill_head(self, *, after_steps: int) -> None:
        """``kill -9`` before the so-manieth of its next steps."""
        self._crash_in = after_steps

    # -- heads -----------------------------------------------------------------------------

    def run(self) -> State:
        """Head after head, until the experiment is over for good."""
        with self._folder, ExitStack() as stack:
            if self.weights is not None:
                stack.callback(self.weights.close)
            settings = self.case.settings
            created = JournalEntry(self.now + self.skew, e.ExperimentCreated(settings))
            self.disk.append([created], (), durable=True)
            Fate(self).plan()
            while True:
                state = self._lead()
                if state is None:
                    continue
                if state.phase is Phase.COMPLETED or self.epoch > HEADS:
                    return state

    def _lead(self) -> State | None:
        """One head's life; None if it was killed, or could not write."""
        self._crash_in, self._crash_at_commit, self.disk.refuse_next = 0, 0, None
        self.epoch += 1
        self.now += self.rng.choice((0.1, 1.0, 5.0, 80.0 if self.odds.head_crashes else 1.0))
        past = self._past()
        state = past.state
        state.trace = self.moves
        row = begin_epoch(
            self.disk,  # type: ignore[arg-type]
            state,
            [e.HeadStarted(self.epoch, self._edited(state.settings))],
            self.now + self.skew,
            durable=True,
        )
        self._leads_since = self.now
        self._phases = (Phase.RUNNING, Phase.RUNNING)
        if state.phase in OVER:
            return state
        self.note(f"head {self.epoch} takes the lead")
        self.tuner.new_head()
        self._backends = {n: SimBackend(host, self.epoch) for n, host in self.hosts.items()}
        clock = SteadyClock(state.now, lambda: self.now + self.skew, lambda: self.now)
        self._ahead, self._clock = clock() - self.now, clock
        engine = self.engine = Engine(
            state,
            self.disk,
            self,  # type: ignore[arg-type]
            RestoringTuner(self.tuner, self.disk, self._compaction, self.restore_file, past),  # type: ignore[arg-type]
            dict(self._backends),
            ControlServer(self._admit, self._update, clock),
            self,
            row=row,
            compactor=self._compaction,
            debug=True,
            clock=clock,
            monotonic=lambda: self.now,
        )
        actions = outstanding(state)
        known = {action.worker for action in actions if isinstance(action, a.LaunchWorker)}
        actions.extend(a.LaunchWorker(w) for w in self.hosts if w not in known)  # type: ignore[arg-type]
        engine.begin(actions)
        engine.run()  # in this thread: the world is its router, and jumps through time
        return self._after(engine)

    def _edited(self, settings: Settings) -> Settings | None:
        """The settings of a file that was edited while nobody led; None: they are as they were."""
        if self.epoch == 1 or self.rng.random() >= self.odds.changes:
            return None
        rules = NEWER_RULES if self.odds.upgrades else ()
        some = [(key, self.rng.choice(values)) for key, values in self.rng.sample(CHANGES, 2)]
        edited = replace(settings, **dict([*some, *rules]))
        return None if edited == settings else edited

    def _past(self) -> Past:
        """What a head reads at its start; the beginning may be folded."""
        self._compaction: Compaction | MemoryCompaction
        if isinstance(self.store, SqliteJournal):
            self._compaction = Compaction(self.store, rows_between=FOLD_ROWS)
        else:
            assert isinstance(self.store, MemoryJournal)
            rows = FOLD_ROWS if self.case.folds else TURNS
            self._compaction = MemoryCompaction(self.store, rows, self.disk.sync)
        past = read_whole_past(self.disk, self._compaction)  # type: ignore[arg-type]
        if isinstance(self.store, SqliteJournal):
            assert isinstance(self._compaction, Compaction)
            fold_at_start(self.store, self._compaction, past)
        return past

    def _after(self, engine: Engine) -> State | None:
        error = engine.error
        self._judge_time(engine.state)
        if isinstance(error, HeadCrash | StoreError):
            self.note(f"head {self.epoch} is no more {error}")
            if isinstance(error, HeadCrash) and self.rng.random() < self.odds.zombies:
                for backend in self._backends.values():
                    for _ in range(3):
                        self.later(self.rng.uniform(0.0, 30.0), backend.speak_after_death)
            return None
        if error is not None:
            raise error
        self.note(f"head {self.epoch} ends: {engine.state.phase}, {engine.state.phase_reason}")
        self._look(engine.state)
        told = [row.event for row in self.disk.history()]
        self.faults.extend(unwarranted(told, engine.state.phase_reason))
        self.faults.extend(unearned(told, engine.state.phase_reason))
        return engine.state

    def _admit(self, parameters: dict[str, Any]) -> e.TrialSubmitted:
        return e.TrialSubmitted("{}", parameters["as"], f"t/{parameters['of']}")

    def _update(self, key: str, value: Any) -> list[e.Event]:
        assert self.engine is not None
        return [e.SettingsUpdated(replace(self.engine.state.settings, **{key: value}))]

    # -- judgement -------------------------------------------------------------------------

    def _look(self, live: State) -> None:
        """A restart here and now would lose nothing, and why nothing runs can be asked."""
        replayed = read_whole_past(self.disk, self._compaction).state  # type: ignore[arg-type]
        found = differences(live, replayed)
        assert not found, "a replay differs from life:\n" + "\n".join(found)
        self._wake_up_call(live)
        answer = why(live, live.now)
        assert answer.text, "no answer to why (promise 10)"
        busy = answer.cause is Cause.ALL_SLOTS_BUSY
        assert live.running or not busy, f"nothing runs, and {answer} (promise 10)"

    def _wake_up_call(self, live: State) -> None:
        """What time brings about comes when it is due, whatever else happens."""
        late = overslept(live)
        assert not late, f"nobody will wake the core in time: {late}"

    def _judge_time(self, state: State) -> None:
        """``max_duration_s`` counts the time in which somebody led. What passed between the last
        word of a head that was killed and its end, only we know."""
        self._led_s += self.now - self._leads_since
        limit = min(self._limits, default=None)
        on_disk = state.phase is self._phases[1]  # and not applied in a batch that was refused
        if limit is not None and on_disk and state.phase_reason == OUT_OF_TIME:
            assert self._led_s > limit - 0.1, (
                f"the experiment is over after {limit} s, and was led for {self._led_s:.1f} s"
            )

    def violations(self, state: State) -> list[str]:
        """What the independent checker says of this run."""
        over = came_to_its_end(state)
        seen = Witnesses(
            calls=self.tuner.calls if state.phase is Phase.COMPLETED else None,
            orders=self.orders,
            words=self.safe_words,
            wishes=self.safe_wishes,
            harms=self.harms,
            loads=self.weights.loads if self.weights is not None else None,
        )
        if isinstance(self.store, MemoryJournal):
            seen.metrics, seen.counted = self.store.metrics, self.store.counted()
        return check_journal(self.disk.history(), seen, over=over)

    def story(self, rows: int = 100_000) -> str:
        """The journal and what befell the world, one line each, in the order of things."""
        start = 1_000_000.0
        lines = [(n, 1, f"-- {at - start:.2f} s: {text}") for n, at, text in self.notes]
        lines += [(r.number, 0, f"#{r.number} {_told(r.event)}") for r in self.disk.history()]
        lines.sort(key=lambda line: line[:2])
        return "\n".join([text for _, _, text in lines][-rows:])


def came_to_its_end(state: State) -> bool:
    """Whether nothing can be left to do: an end that comes before the last trial leaves things
    undone."""
    early = state.phase_reason == OUT_OF_TIME or is_earned(state.phase_reason)
    return state.phase is Phase.COMPLETED and not early


def _told(event: e.Event) -> str:
    """An event without what is as always."""
    parts = [
        f"{field.name}={value!r}"
        for field in fields(event)
        if (value := getattr(event, field.name)) not in ("", None, ()) and value != field.default
    ]
    return f"{type(event).__name__}({', '.join(parts)})"
