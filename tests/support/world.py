"""A world for the engine to live in: clock, peers, users and accidents, all from one seed.

The engine, the core, the codec and the desk are real; what they talk to is here. Time jumps
to the next thing that happens. See :mod:`tests.support.agents` and
:mod:`tests.support.tuner_model` for the peers.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dispatcher.channel import Said
from dispatcher.control.desk import Desk
from dispatcher.control.messages import Request, encoder, reply_decoder
from dispatcher.core import State, apply, new_state, next_deadline, outstanding
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import OVER, Phase
from dispatcher.core.settings import Settings
from dispatcher.engine import Engine
from dispatcher.history import replay
from dispatcher.ports import Entry, Journal
from tests.support.agents import AgentBackend
from tests.support.checker import check_journal
from tests.support.replaying import differences
from tests.support.tuner_model import TunerModel

#: Turns after which a run is taken for one that will never end.
TURNS = 10_000


class HeadCrash(BaseException):
    """``kill -9`` of the head, where it hurts."""


class Stuck(AssertionError):
    """Nothing will ever happen again, and the experiment is not over."""


@dataclass
class Odds:
    """How often what goes wrong; probabilities, unless the name says otherwise."""

    trial_fails: float = 0.15
    tuner_raises: float = 0.02
    not_now: float = 0.05
    host_crashes: int = 1
    agent_accidents: int = 2
    head_crashes: int = 1
    user_acts: int = 3
    stops: int = 0


class World:
    """Everything outside the head. ``run`` leads the experiment to its end, heads and all."""

    def __init__(
        self, seed: int, journal: Journal, settings: Settings, odds: Odds, workers: dict[str, int]
    ) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.now = 1_000_000.0
        self.journal = journal
        self.settings = settings
        self.odds = odds
        self.workers = workers
        self.agents = AgentBackend(self)
        self.tuner = TunerModel(self)
        self.engine: Engine | None = None
        self.epoch = 0
        self.replies: list[Any] = []
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.finishes: list[Phase] = []
        self._agenda: list[tuple[float, int, Callable[[], list[Said] | None]]] = []
        self._tie = itertools.count()
        self._turns = 0
        self._crash_in_append = 0

    # -- time ----------------------------------------------------------------------------

    def later(self, delay: float, do: Callable[[], list[Said] | None]) -> None:
        """Something that happens ``delay`` seconds from now; ties go first in, first out."""
        heapq.heappush(self._agenda, (self.now + delay, next(self._tie), do))

    def at(self, moment: float, do: Callable[[], list[Said] | None]) -> None:
        heapq.heappush(self._agenda, (max(moment, self.now), next(self._tie), do))

    def poll(self, _timeout_s: float) -> list[Said]:
        """What the router hands out: jump to what comes next, and gather what is due by then."""
        self._turns += 1
        assert self.engine is not None
        state = self.engine.state
        if self._turns > TURNS:
            raise Stuck("the experiment does not end")
        if self._turns % 97 == 0:
            self.compare(state)
        due = next_deadline(state)
        first = self._agenda[0][0] if self._agenda else None
        if due is not None and (first is None or due <= first):
            if due > self.now:
                self.now = due
            return []
        if first is None:
            raise Stuck(f"nothing will ever happen again: {state.phase} {state.phase_reason}")
        self.now = max(self.now, first)
        until = self.now + self.rng.choice((0.0, 0.0, 0.05, 0.5))
        said: list[Said] = []
        while self._agenda and self._agenda[0][0] <= until:
            moment, _, do = heapq.heappop(self._agenda)
            self.now = max(self.now, moment)
            said.extend(do() or ())
        return said

    # -- the router's other methods ------------------------------------------------------

    def wake(self) -> None:
        """The engine is awake: it called us."""

    def send(self, _peer: bytes, payload: bytes) -> bool:
        self.replies.append(reply_decoder.decode(payload))
        return True

    def leave(self, _peer: bytes) -> None:
        """Guests are not remembered."""

    # -- the head's own -------------------------------------------------------------------

    def act(self, action: a.HeadAction) -> None:
        if isinstance(action, a.Finish):
            self.finishes.append(action.phase)

    def stacks(self, stacks: dict[int, str]) -> None:
        """Nobody reads them here."""

    def peer_fault(self, owner: str, error: Exception) -> None:
        self.faults.append(f"{owner}: {error}")

    # -- what users and fate do -----------------------------------------------------------

    def ask(self, verb: str, **arguments: Any) -> list[Said]:
        """A request at the desk."""
        request = Request(1, verb, arguments)
        return [Said("", b"control:guest", encoder.encode(request))]

    def _plan(self) -> None:
        """Accidents and users' wishes, spread over the time that the run may take."""
        rng, odds = self.rng, self.odds
        span = 40.0

        def some(count: int) -> range:
            return range(rng.randint(0, count))

        for _ in some(odds.user_acts):
            self.later(rng.uniform(0, span), self._user)
        for _ in some(odds.host_crashes):
            self.later(rng.uniform(0, span), self.tuner.crash)
        for _ in some(odds.agent_accidents):
            self.later(rng.uniform(0, span), self.agents.accident)
        for _ in some(odds.head_crashes):
            self.later(rng.uniform(0, span), self._crash)
        for _ in some(odds.stops):
            self.later(rng.uniform(0, span), self._stop)

    def _user(self) -> list[Said]:
        assert self.engine is not None
        number = self.rng.randrange(max(1, int(self.engine.state.next_id)))
        wish = self.rng.random()
        if wish < 0.5:
            return self.ask("stop_trial", trial=number)
        if wish < 0.8:
            return self.ask("submit", parameters={"of": number})
        return self.ask("snapshot")

    def _stop(self) -> list[Said]:
        return self.ask("stop", kind=self.rng.choice(("drain", "now")), reason="the user")

    def _crash(self) -> list[Said] | None:
        if self.rng.random() < 0.5:
            raise HeadCrash
        self._crash_in_append = 1 if self.rng.random() < 0.5 else 2
        return None

    # -- the journal, with accidents ------------------------------------------------------

    def append(self, entries: Any, touched: Any, *, durable: bool) -> int:
        """Dies before the commit, or after it and before anything left."""
        if self._crash_in_append == 1:
            self._crash_in_append = 0
            raise HeadCrash
        number = self.journal.append(entries, touched, durable=durable)
        if self._crash_in_append == 2:
            self._crash_in_append = 0
            raise HeadCrash
        return number

    def save_snapshot(self, snapshot: Any) -> None:
        self.journal.save_snapshot(snapshot)

    # -- heads -----------------------------------------------------------------------------

    def run(self) -> State:
        """Head after head, until the experiment is over for good."""
        self._write([e.ExperimentCreated(self.settings)], new_state(self.settings))
        self._plan()
        while True:
            state = self._lead()
            if state is not None and (state.phase is Phase.COMPLETED or self.epoch > 8):
                return state

    def _write(self, events: list[e.Event], state: State) -> int:
        entries = []
        for event in events:
            step = apply(state, event, self.now)
            entries.append(Entry(self.now, event, step.counted))
        row = self.journal.append(entries, [state.trials[t] for t in state.dirty], durable=True)
        state.dirty.clear()
        return row

    def _lead(self) -> State | None:
        self.epoch += 1
        self.now += self.rng.uniform(0.1, 5.0)
        state, _ = replay(self.journal)
        row = self._write([e.HeadStarted(self.epoch)], state)
        if state.phase in OVER:
            return state
        self.agents.new_head()
        self.tuner.new_head()
        self.engine = Engine(
            state,
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self.tuner,
            {"local": self.agents},
            Desk(self._admit, lambda _key, _value: [], clock=lambda: self.now),
            self,
            row=row,
            debug=True,
            clock=lambda: self.now,
        )
        actions = outstanding(state)
        known = {action.worker for action in actions if isinstance(action, a.LaunchWorker)}
        actions.extend(a.LaunchWorker(w) for w in self.workers if w not in known)  # type: ignore[arg-type]
        self.engine.begin(actions)
        self.engine.run()  # in this thread: the world is its router, and jumps through time
        error = self.engine.error
        self.notes.append(f"head {self.epoch} ended: {error!r} {state.phase}")
        if isinstance(error, HeadCrash):
            return None
        if error is not None:
            raise error
        self.compare(state)
        return state

    def _admit(self, parameters: dict[str, Any]) -> e.TrialSubmitted:
        name = f"hand/{next(self._tie)}"
        return e.TrialSubmitted("{}", name, f"t/{parameters['of']}")

    # -- judgement -------------------------------------------------------------------------

    def compare(self, live: State) -> None:
        """A restart here and now would lose nothing."""
        replayed, _ = replay(self.journal)
        found = differences(live, replayed)
        assert not found, "a replay differs from life:\n" + "\n".join(found)

    def violations(self, state: State) -> list[str]:
        """What the independent checker says of this run."""
        over = state.phase is Phase.COMPLETED
        calls = self.tuner.calls if over else None
        return check_journal(self.journal.rows(), calls, over=over)

    def story(self, rows: int = 60) -> str:
        """The last rows of the journal, one line each, and how heads ended."""
        lines = [f"#{row.number} at {row.at:.2f}: {row.event}" for row in self.journal.rows()]
        return "\n".join([*self.notes, *lines[-rows:]])
