"""The one thread that owns the state and the journal's write side.

One turn: poll the peers, turn their messages into facts, apply them, commit the batch, and
only then let acknowledgements and actions leave. It decides nothing (the core does) and
waits for nothing but the poll.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, Protocol

from dispatcher.channel import PeerMessage, Router
from dispatcher.control.server import ControlServer, Handled
from dispatcher.core import (
    ENDS_OF_ATTEMPTS,
    State,
    apply,
    check,
    judged_by,
    next_deadline,
    worker_of,
)
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import OVER
from dispatcher.errors import (
    BrokenInvariant,
    InvalidTransition,
    PassingBackendError,
    ProtocolError,
)
from dispatcher.peer_checks import PeerChecks
from dispatcher.ports import (
    Backend,
    Compactor,
    Frame,
    Journal,
    JournalEntry,
    RefusedEvent,
    Snapshot,
    TunerPort,
)
from trial_runtime.failpoints import failpoint

#: Facts applied in one transaction: larger batches would delay the acknowledgement of their
#: first fact for more than they save.
BATCH = 256

#: Facts of the tuner host taken in one turn of the loop. Ten thousand requests that are let
#: go answer within a second, and an attempt's reports must not wait behind all of them.
TUNER_SLICE = 64

#: Rows of the read model that lag behind and are written with a batch beside those of the trials
#: that it names, and when there is nothing else to do. Few with a batch: most of them belong to
#: requests that have just been let go, and each is written again with what that request proposes.
ROWS_BESIDE = 8
ROWS_AT_REST = 64

#: Seconds without a message after which there is nothing else to do.
REST_S = 0.002

#: Facts of users, signals and the weight keeper that may wait.
INBOX = 10_000

#: What others rest on: an attempt whose number must not be given again after a power cut, weights
#: that are removed, an experiment that is reported as over.
_BINDING = (a.StartAttempt, a.GrantRemoval, a.GrantVersions, a.Finish)


def _binds(actions: list[a.Action]) -> bool:
    """Whether what follows must not be undone by a power cut."""
    return any(isinstance(action, _BINDING) for action in actions)


class Watcher(Protocol):
    """The engine's observer, which gets what leaves it. Thread: the engine's; must not wait."""

    def act(self, action: a.HeadAction) -> None:
        """Carry out an action that is for the head itself."""
        ...

    def stacks(self, stacks: dict[int, str]) -> None:
        """Take in stacks of blocked tuner threads."""
        ...

    def peer_fault(self, owner: str, error: Exception) -> None:
        """Note that a peer sent what it may not send; the message was dropped."""
        ...

    def refused(self, refused: RefusedEvent) -> None:
        """Note that the core refused an event: a peer's was dropped, one of ours ends the engine
        with the error, which may be given a hint."""
        ...


class ReceivedMessage(NamedTuple):
    number: int  # of those that its peer has sent to this head
    events: list[e.Event]

    def frame(self, event: e.Event) -> Frame:
        place = next(at for at, one in enumerate(self.events, 1) if one is event)
        return Frame(self.number, place, len(self.events))


class OwnedFact(NamedTuple):
    """An event, with the peer that it comes from."""

    owner: str  # the peer that sent it; empty: ours
    event: e.Event
    message: ReceivedMessage | None = None  # that it came in


class Engine(threading.Thread):
    """Runs until the core says :class:`~dispatcher.core.actions.Finish`, or an error.

    ``error`` holds what ended it early: a full disk, a broken invariant.
    """

    def __init__(
        self,
        state: State,
        journal: Journal,
        router: Router,
        tuner: TunerPort,
        backends: dict[str, Backend],
        control: ControlServer,
        watcher: Watcher,
        *,
        row: int = 0,
        compactor: Compactor | None = None,
        foreign: Collection[str] = (),
        debug: bool = False,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(name="engine", daemon=True)
        self.state = state
        self.error: BaseException | None = None
        self.finished = threading.Event()
        self._journal = journal
        self._router = router
        self._tuner = tuner
        self._backends = backends
        self._control = control
        self._watcher = watcher
        self._row = row  # number of the newest journal row
        self._compactor = compactor
        self._foreign = foreign  # backends that are judged like peers in what they check, too
        self._debug = debug
        self._clock = clock
        self._checks = PeerChecks(backends, monotonic)
        # A SimpleQueue may be used in a signal handler; a Queue's lock may not.
        self._inbox: queue.SimpleQueue[e.Event] = queue.SimpleQueue()
        self._replies: list[tuple[bytes, Handled]] = []
        self._heard: dict[str, None] = {}  # backends whose messages are being applied
        self._to_flush: dict[str, None] = {}  # those that have something to send, perhaps
        self._due: float | None = None  # the next deadline of the state
        self._of_tuner: deque[OwnedFact] = deque()
        self._messages: dict[str, int] = {}  # of each peer so far
        self._abandon = False

    def post(self, event: e.Event) -> None:
        """Hand in a fact. From any thread, and from signal handlers.

        Raises:
            PassingBackendError: more are waiting than any user could mean.
        """
        if self._inbox.qsize() >= INBOX:
            raise PassingBackendError("the engine is behind; try again")
        self._inbox.put(event)
        self._router.wake()

    def abandon(self) -> None:
        """End the thread where it stands; the journal is what is left. From any thread."""
        self._abandon = True
        self._router.wake()

    def run(self) -> None:
        """Run the thread."""
        try:
            self._loop()
        except BaseException as error:  # noqa: BLE001 - the head re-raises it
            self.error = error
        finally:
            self.finished.set()

    def begin(self, actions: list[a.Action]) -> None:
        """Carry out what is outstanding. Before :meth:`start`, from the head's thread."""
        self._perform(actions)

    def _loop(self) -> None:
        self._due = next_deadline(self.state)
        while self.state.phase not in OVER and not self._abandon:
            wait_s = 0.0 if self._of_tuner else self._timeout()
            facts = self._collect(self._router.poll(wait_s))
            if self._checks.wait_s() <= 0:
                facts.extend(self._check_peers())
            for _ in range(min(len(self._of_tuner), TUNER_SLICE)):
                facts.append(self._of_tuner.popleft())
            if not facts and self.state.dirty:
                self._commit([], durable=False)
            if self._due is not None and self._due <= self._clock():
                facts.append(OwnedFact("", e.Tick()))
            for start in range(0, len(facts), BATCH):
                self.turn(facts[start : start + BATCH], last=start + BATCH >= len(facts))
            if self._heard:  # repetitions only: known, and to be acknowledged all the same
                self.turn([], last=True)
            self._send_replies()
        while self.state.dirty and not self._abandon:
            self._commit([], durable=False)

    def _timeout(self) -> float:
        timeout = self._checks.wait_s()
        if self.state.dirty:
            timeout = min(timeout, REST_S)
        if self._due is not None:
            timeout = min(timeout, self._due - self._clock())
        return max(0.0, timeout)

    def _collect(self, received: list[PeerMessage]) -> list[OwnedFact]:
        facts: list[OwnedFact] = []
        for _ in range(self._inbox.qsize()):
            facts.append(OwnedFact("", self._inbox.get()))
        for owner, peer, payload in received:
            try:
                if owner == "":
                    handled = self._control.receive(payload, self.state)
                    if handled.events:
                        self.turn([OwnedFact("", event) for event in handled.events], last=False)
                    self._replies.append((peer, handled))
                    continue
                if owner == "tuner":
                    events = self._tuner.receive(payload)
                    self._of_tuner.extend(self._framed(owner, events))
                    continue
                events = self._backends[owner].receive(payload)
                facts.extend(self._framed(owner, events))
                self._heard[owner] = None
            except ProtocolError as error:
                self._watcher.peer_fault(owner, error)
        return facts

    def _framed(self, owner: str, events: list[e.Event]) -> list[OwnedFact]:
        """The facts of a peer's next message."""
        number = self._messages[owner] = self._messages.get(owner, 0) + 1
        message = ReceivedMessage(number, events)
        return [OwnedFact(owner, event, message) for event in events]

    def _check_peers(self) -> list[OwnedFact]:
        if self._checks.begins:
            if self._compactor is not None:
                self._compactor.tidy()
            # Behind what the host sent before it died.
            self._of_tuner.extend(OwnedFact("", event) for event in self._tuner.check())
        facts: list[OwnedFact] = []
        for name, backend in self._checks.part():
            events = backend.check()
            owner = name if name in self._foreign else ""
            facts.extend(OwnedFact(owner, event) for event in events)
            if events:
                self._heard[name] = None
        return facts

    def turn(self, facts: list[OwnedFact], *, last: bool) -> None:
        """Apply a batch, commit it, then act. With the ``last`` one all that was received is on
        disk: acknowledgements travel with the actions."""
        state = self.state
        entries: list[JournalEntry] = []
        actions: list[a.Action] = []
        snapshots: list[tuple[int, str]] = []  # (entries before it, state)
        durable = False
        at = self._clock()
        self._catch_up(facts)
        for owner, event, message in _with_what_judges(state, facts):
            row = e.CATALOGUE[type(event)]
            worker = worker_of(state.trials, event)
            if owner and _origin_of(owner) not in row.by:
                text = f"it may not report {type(event).__name__}"
                self._watcher.peer_fault(owner, ProtocolError(text))
                continue
            if owner in self._backends and not self._is_its_own(event, owner):
                text = f"it speaks of an attempt that is not its own: {_named(event)}"
                self._watcher.peer_fault(owner, ProtocolError(text))
                continue
            try:
                step = apply(state, event, at)
                if self._debug:
                    check(state)
            except (InvalidTransition, BrokenInvariant) as error:
                entry = JournalEntry(at, event, worker=worker)
                batch = tuple(entries)
                frame = None if message is None else message.frame(event)
                refused = RefusedEvent(error, owner, frame, entry, self._row, batch, state)
                self._watcher.refused(refused)
                if not refused.is_peers_fault:
                    raise
                continue
            if isinstance(event, e.StacksReported):
                self._watcher.stacks(event.stacks)
                continue
            if isinstance(event, e.TunerStateTaken):
                snapshots.append((len(entries), event.state))
                continue
            entries.append(JournalEntry(at, event, step.counted, worker))
            actions.extend(step.actions)
            durable = durable or row.durable or _binds(step.actions)
        self._due = next_deadline(state)
        before = self._row
        failpoint("engine.batch.applied")
        self._commit(entries, durable=durable)
        failpoint("engine.batch.committed")
        for position, text in snapshots:
            kept = sum(e.is_journalled(entry.event) for entry in entries[:position])
            self._journal.save_snapshot(Snapshot(before + kept, text))
            failpoint("engine.snapshot.kept")
            if self._compactor is not None and before + kept == self._row:
                self._compactor.offer(state, self._row)
        if last:
            for name in self._heard:
                self._backends[name].acknowledge()
            self._to_flush |= self._heard
            self._heard.clear()
        failpoint("engine.batch.acknowledged")
        self._perform(actions)

    def _catch_up(self, facts: list[OwnedFact]) -> None:
        """Write the rows that lag behind of trials which are about to end: the core drops the
        result and the parameters of an ended trial, and only the read model keeps them."""
        state = self.state
        if not state.dirty:
            return
        ending = [f.event.trial for f in facts if isinstance(f.event, e.EndDelivered)]
        late = [trial for trial in dict.fromkeys(ending) if trial in state.dirty]
        if late:
            self._journal.append([], [state.trials[trial] for trial in late], durable=False)

    def _commit(self, entries: list[JournalEntry], *, durable: bool) -> None:
        """The journal has the whole batch; of the read model at most ``ROWS_BESIDE`` more rows
        than the batch names, the rest with the next ones or at rest: an end that lets a thousand
        requests go must not keep the first of them waiting for a thousand rows."""
        dirty, trials = self.state.dirty, self.state.trials
        if not (entries or dirty):
            return
        named = {getattr(entry.event, "trial", None) for entry in entries}
        touched = [trial for trial in named if trial in dirty]
        for trial in touched:
            del dirty[trial]
        more = list(itertools.islice(dirty, ROWS_BESIDE if entries else ROWS_AT_REST))
        for trial in more:
            del dirty[trial]
        records = [trials[trial] for trial in (*touched, *more)]
        self._row = self._journal.append(entries, records, durable=durable)

    def _perform(self, actions: list[a.Action]) -> None:
        for action in actions:
            if isinstance(action, a.TunerAction):
                self._tuner.perform(action)
            elif isinstance(action, a.WorkerAction):
                owner = self._owner_of(action.worker)
                self._backends[owner].perform(action)
                self._to_flush[owner] = None
            else:
                self._watcher.act(action)
        self._tuner.flush()
        failpoint("engine.tuner.told")
        for name in self._to_flush:  # of a thousand the others have nothing to send
            self._backends[name].flush()
        self._to_flush.clear()
        failpoint("engine.actions.sent")

    def _owner_of(self, worker: str) -> str:
        """The backend of a worker: each worker has one of its own, or is called
        ``<backend>/<host>``."""
        return worker if worker in self._backends else worker.partition("/")[0]

    def _is_its_own(self, event: e.Event, owner: str) -> bool:
        """Whether an event is of no attempt that another backend runs, nor of one that nobody was
        given yet. Events of an attempt that is not believed any more are late, whoever sends
        them, and have no effect."""
        trial = self.state.trials.get(getattr(event, "trial", None))  # type: ignore[arg-type]
        if trial is None:
            return True  # of no trial that there is: the core says so
        attempt: int = getattr(event, "attempt", trial.attempt)
        if attempt != trial.attempt:
            return attempt < trial.attempt
        return trial.worker is None or self._owner_of(trial.worker) == owner

    def _send_replies(self) -> None:
        ready = [each for each in self._replies if each[1].ready()]
        for peer, handled in ready:
            self._router.send(peer, handled.reply(self.state))
            self._router.leave(peer)
        self._replies = [each for each in self._replies if each not in ready]


def _with_what_judges(state: State, facts: Iterable[OwnedFact]) -> Iterator[OwnedFact]:
    """The facts, and before each that ends an attempt the metrics that it is judged by and that are
    in no row. Lazy: the metrics are asked for when the facts before them are applied."""
    for fact in facts:
        if type(fact.event) in ENDS_OF_ATTEMPTS:
            for metric in judged_by(state, fact.event):
                yield OwnedFact("", metric)
        yield fact


def _origin_of(owner: str) -> e.Origin:
    return e.Origin.TUNER if owner == "tuner" else e.Origin.WORKER


def _named(event: e.Event) -> str:
    """An event for the log: its kind and its attempt. Whatever else is in it may be long."""
    trial, attempt = getattr(event, "trial", "?"), getattr(event, "attempt", "?")
    return f"{type(event).__name__} of attempt {trial}.{attempt}"
