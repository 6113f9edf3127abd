"""The state: what is true of the experiment after the last event.

Records are changed in place by :func:`dispatcher.core.apply` only, which checks before it
changes. Nothing here is shared with another thread: what leaves the core is an action.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.resources import Needs, Offer, Used
from dispatcher.core.settings import Settings
from trial_runtime.facts import EndReason as EndReason
from trial_runtime.facts import Pinned as Pinned
from trial_runtime.facts import Weights as Weights


class TrialState(StrEnum):
    """The state of a trial, from the request for it to its end. Exactly one collection of
    :class:`State` (named beside each) holds a trial that has not ended."""

    OPEN = "open"  # in generate_parameters, running                     open
    BLOCKED = "blocked"  # in generate_parameters, in a wait             blocked
    PARKED = "parked"  # the tuner said "not now" (NoMoreTrialError)     parked
    HELD = "held"  # proposed, its parent's gate still closed            held
    QUEUED = "queued"  # waits for a slot                                queued
    RUNNING = "running"  # an attempt is on a worker                     running
    BACKOFF = "backoff"  # waits before its next attempt                 backoff
    DELIVERING = "delivering"  # over; the tuner is taking its end        delivering
    ENDED = "ended"  # over; its gate is open or failed                  -


class AttemptState(StrEnum):
    """The state of the newest attempt: what the head has asked for, and what its agent has
    reported."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"


class Outcome(StrEnum):
    """How a trial ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    LOST = "lost"
    KILLED = "killed"
    STOPPED_EARLY = "stopped early"
    NO_TRIAL = "no trial"


class FailReason(StrEnum):
    """Why a parent cannot bequeath: the reason that ``ParentFailed`` carries."""

    WEIGHTS_MISSING = "weights missing"
    WEIGHTS_GONE = "weights gone"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    LOST = "lost"
    KILLED = "killed"
    STOPPED_EARLY = "stopped early"
    NO_TRIAL = "no trial"
    NO_VERSION = "published no version"  # that somebody waits for, of a shared store


class Phase(StrEnum):
    """The phase of the experiment as a whole."""

    RUNNING = "running"
    DRAINING = "draining"  # no new trials; what runs may finish
    STOPPING = "stopping"  # attempts are being stopped
    STOPPED = "stopped"  # can be resumed
    COMPLETED = "completed"
    FAILED = "failed"  # can be resumed, too


OVER = frozenset({Phase.STOPPED, Phase.COMPLETED, Phase.FAILED})


class Rule(StrEnum):
    """A joint rule that moves trials, whatever the event was that it follows."""

    ASKED = "asked"  # a slot would idle without another request
    ASKED_AGAIN = "asked again"  # so would it, and what the tuner said "not now" to may be asked
    BACKOFF_OVER = "back-off over"
    PLACED = "placed"  # there is a place on a worker
    NEVER_FITS = "never fits"  # no worker can ever give what the trial needs
    TUNER_DONE = "tuner done"  # nothing is left whose end could change "not now"
    GATE_OPENED = "gate opened"  # of those who waited for that trial
    VERSION_PUBLISHED = "version published"  # of those who waited for that version
    HOST_GONE = "tuner host gone"  # and with it the threads that stood in waits


#: What moves a trial: a rule, or an event by its kind.
Trigger: TypeAlias = type[Any] | Rule


class Move(NamedTuple):
    """One change of a trial's state. ``before`` is None for a trial that is new."""

    trial: TrialId
    before: TrialState | None
    after: TrialState
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a gate to children: ``reason is None`` means *come in*.

    ``chain`` names the trials through which the failure came, nearest first.
    """

    reason: FailReason | None = None
    chain: tuple[TrialId, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether children may inherit."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a shared store. Its number is its place in the store, from 1. ``path`` is
    relative to the folder of the experiment's stores. A version stays whatever becomes of the
    trial that wrote it. ``serial`` counts the versions of all stores, in the order in which they
    came."""

    path: str
    digest: str
    nbytes: int
    trial: TrialId
    attempt: int
    domain: str = ""  # the storage domain in which it was written
    serial: int = 0


@dataclass(slots=True)
class Trial:
    """One trial and the request it came from."""

    id: TrialId
    state: TrialState
    since: float
    parameters: str = ""  # JSON text; dropped when the trial has ended
    save_path: str | None = None  # canonical, relative to the weights root
    restore_path: str | None = None
    parent: TrialId | None = None  # the trial whose save_path is this one's restore_path
    by_hand: bool = False
    asked: int = 0  # how often the tuner was asked for this request
    asked_after: int = 0  # results delivered when it was asked last
    tuner_errors: int = 0  # how often the tuner failed to answer it
    attempt: int = 0  # number of the newest attempt, 0 before the first
    attempt_state: AttemptState | None = None
    worker: WorkerId | None = None
    last_seq: int = 0  # highest number of a metric taken from the newest attempt
    weights_seq: int = 0  # number of the message that brought ``weights``
    failures: int = 0  # attempts that count against trial_retries
    losses: int = 0  # attempts that do not
    retried: dict[EndReason, int] | None = None  # for reasons with a limit of their own
    failed_on: WorkerId | None = None  # where its newest attempt failed
    final: str | None = None  # JSON text of the final metric
    last_intermediate: str | None = None
    weights: Weights | None = None
    self_published: bool = False  # the trial published the weights itself, completely
    kill_reason: EndReason | None = None  # why a stop was asked for
    stop_grace_s: float | None = None  # what its newest attempt has to stop in; None: the usual
    gives_way: bool = False  # its newest attempt is to stop, since its place ends
    result_delivered: bool = False
    delivery_still: bool = False  # the tuner stands still in taking it
    outcome: Outcome | None = None
    success: bool = False
    result: str | None = None  # JSON text for receive_trial_result; None: not called
    verdict_due: Verdict | None = None  # decided, and not given before the delivery
    verdict: Verdict | None = None  # given: the gate is open, or failed
    needs: Needs | None = None  # its own; None: those of the settings
    devices: tuple[str, ...] = ()  # that the newest attempt holds, by id
    domain: str = ""  # the storage domain in which its weights were committed
    refusal: str = ""  # why it was never started, or why its result does not count
    place: int = 0  # in the queue: the trial that came first has the lowest
    passed_over: int = 0  # later trials that began while there was no place for it
    reads: tuple[tuple[str, int], ...] = ()  # versions of shared stores, while it has not ended
    heard: tuple[tuple[str, int], ...] = ()  # versions that its newest attempt knows of
    published: tuple[tuple[str, int], ...] = ()  # the newest version of its own in each store
    asked_serial: int = 0  # of the newest version there was when the tuner was asked for it

    def __repr__(self) -> str:
        parts = [f"Trial {self.id} {self.state.name}"]
        if self.attempt:
            parts.append(f"attempt={self.attempt} on {self.worker}")
        if self.parent is not None:
            parts.append(f"child of {self.parent}")
        if self.outcome is not None:
            parts.append(self.outcome.value)
        return f"<{', '.join(parts)}>"


@dataclass(slots=True)
class Wait:
    """A blocked request (``ticket`` > 0) or a held trial (``ticket`` 0) and its open parents."""

    ticket: int
    parents: tuple[TrialId, ...]
    # "all", "any", "version" (of a shared store), "foreign" (not ours, no parents) or "held" (a
    # proposed trial)
    mode: str
    missing: set[TrialId]  # parents whose gates have not opened yet
    since: float
    store: str = ""  # the shared store that a version is awaited of
    version: int = 0  # its number; 0: any that a parent publishes
    place: str = ""  # the author's line, of a wait that is not ours


@dataclass(slots=True)
class WorkerHealth:
    """The health of a worker: how attempts ended there. See :mod:`dispatcher.core.quarantine`."""

    failing: dict[TrialId, None] = field(default_factory=dict)  # failed there, none well since
    failing_since: float = 0.0
    went_well_at: float | None = None  # when an attempt ended well there last
    quarantined_until: float | None = None
    quarantines: int = 0  # in a row
    on_probation: bool = False  # one attempt at a time, until one has ended well
    probe: TrialId | None = None  # that attempt's trial

    @property
    def trusted(self) -> bool:
        """Whether the worker is neither left out nor on probation."""
        return self.quarantined_until is None and not self.on_probation


@dataclass(slots=True)
class Worker:
    """A place with slots: one agent on one host."""

    id: WorkerId
    slots: int
    alive: bool = True
    losses: int = 0  # in a row, without a hello in between
    trouble: str = ""  # why it was lost last
    excluded: bool = False  # it is there, and waits for its host to be repaired
    waits_since: float | None = None  # for a place where its agent can run
    waiting: str = ""  # why it does; empty while none is asked for, since there is nothing to run
    begun: int = 0  # attempts in the place that it has now
    closing: bool = False  # its place ends soon, and what ran there was asked to stop
    suspect_since: float | None = None  # silent, and not given up yet: since its last message
    health: WorkerHealth = field(default_factory=WorkerHealth)
    running: set[TrialId] = field(default_factory=set)
    offer: Offer | None = None  # its resources beside slots; None: not reported
    known: Offer | None = None  # the most that it had since the head started
    domain: str = ""  # its storage domain, as its backend says
    cached: frozenset[str] = frozenset()  # digests of weights that lie on its disk
    used: Used = field(default_factory=Used)  # by what runs there, in what is counted

    @property
    def usable(self) -> bool:
        """Whether new attempts may go there, free slots aside."""
        return self.alive and self.suspect_since is None


class QueueClass(NamedTuple):
    """Queued trials that can stand in for one another: if there is no place for the first of
    them, there is none for the others. ``home`` is the storage domain that holds the parent's
    weights; None for a trial that may run anywhere."""

    needs: Needs | None
    home: str | None
    failed_on: WorkerId | None


@dataclass(frozen=True, slots=True)
class LowDisk:
    """A file system with less room than the experiment keeps in reserve."""

    free_bytes: int
    needed_bytes: int
    since: float


@dataclass(frozen=True, slots=True)
class FailureCause:
    """One cause among trials that failed in a row, in the text of the newest of them."""

    count: int
    text: str
    trial: TrialId


@dataclass(slots=True)
class Failures:
    """Trials that ended in failure; see :mod:`dispatcher.core.failures`."""

    in_a_row: int = 0  # since the last trial that went well, or the start of this head
    in_all: int = 0
    went_well: int = 0  # trials, in all
    causes: dict[str, FailureCause] = field(default_factory=dict)  # of the row, as they came
    tripped: bool = False  # there were too many in a row


@dataclass(slots=True)
class SearchProgress:
    """The results so far, and the time that attempts have taken; see
    :mod:`dispatcher.core.earned_ends`."""

    best: float | None = None
    best_trial: TrialId | None = None
    mark: float | None = None  # the last result that counted as progress
    since_mark: int = 0  # trials with a result since that one
    spent_s: float = 0.0  # time of all attempts together, until ``spent_at``
    spent_at: float = 0.0  # when the number of those that run has changed last


@dataclass(slots=True)
class State:
    """Everything the core knows. See :mod:`dispatcher.core.invariants` for what must
    always hold."""

    settings: Settings
    phase: Phase = Phase.RUNNING
    phase_reason: str = ""
    over_phase: Phase = Phase.STOPPED  # what DRAINING or STOPPING ends in
    started_at: float | None = None
    active_s: float = 0.0  # time under heads that are gone
    epoch: int = 0
    now: float = 0.0
    last_event_at: float = 0.0  # the event before this one

    host_ready: bool = False
    host_restarts: int = 0
    tuner_errors_in_a_row: int = 0
    abandoned_in_a_row: int = 0  # requests that failed with their parents, nothing in between
    abandoned_text: str = ""  # the error of the newest of them
    tuner_done: bool = False
    failures: Failures = field(default_factory=Failures)
    progress: SearchProgress = field(default_factory=SearchProgress)
    low_disks: dict[str, LowDisk] = field(default_factory=dict)  # by place
    results_seen: int = 0  # ends delivered so far; a parked request is asked again after one
    search_space: str | None = None  # newest one, if it was changed while we ran
    lookahead_extra: int = 0  # what ``onStall: grow`` has added
    quiet_since: float | None = None  # nothing but open requests is left since then
    fail_at: float | None = None  # a stall was named; time for the stacks to come in
    deadlock_named: bool = False  # once is enough
    asked_more: int = 0  # by how many ``asks_at_most`` was raised, since all that it allows waited
    still_since: float = 0.0  # when the delivery that stands still was seen to
    still_at: str = ""  # the line of the author's code where it stands

    next_id: TrialId = TrialId(0)  # noqa: RUF009 - a NewType is a plain int
    submitted: int = 0  # trials with parameters that came from the tuner
    trials: dict[TrialId, Trial] = field(default_factory=dict)
    workers: dict[WorkerId, Worker] = field(default_factory=dict)

    open: dict[TrialId, None] = field(default_factory=dict)
    blocked: dict[TrialId, None] = field(default_factory=dict)
    parked: dict[TrialId, int] = field(default_factory=dict)  # → results it was answered with
    held: dict[TrialId, None] = field(default_factory=dict)
    queued: dict[TrialId, None] = field(default_factory=dict)
    queue_classes: dict[QueueClass, deque[TrialId]] = field(default_factory=dict)  # of ``queued``
    came: int = 0  # trials that have come into the queue
    unjudged: bool = False  # something new may show that a need can never be met
    all_wait: bool = False  # there was no place for any class, and nothing has come free since
    running: dict[TrialId, None] = field(default_factory=dict)
    first_end: float | None = None  # of a place that is not closing; None: none is known
    first_return: float | None = None  # from a quarantine; None: no worker is left out
    backoff: dict[TrialId, float] = field(default_factory=dict)  # → when it may start again
    delivering: dict[TrialId, None] = field(default_factory=dict)  # in commit order

    waits: dict[TrialId, Wait] = field(default_factory=dict)
    waiters: dict[TrialId, dict[TrialId, None]] = field(default_factory=dict)
    claims: dict[str, TrialId] = field(default_factory=dict)  # save_path → owner
    claim_folders: dict[str, TrialId] = field(default_factory=dict)  # folders above claims
    removed_weights: set[TrialId] = field(default_factory=set)  # deleted by retention
    stores: dict[str, list[Version | None]] = field(default_factory=dict)  # None: removed
    kept_versions: dict[str, list[int]] = field(default_factory=dict)  # not removed, ascending
    held_versions: dict[str, tuple[int, ...]] = field(default_factory=dict)  # by the tuner
    version_serial: int = 0  # of the newest version of all stores
    version_waiters: dict[str, dict[TrialId, None]] = field(default_factory=dict)  # by store
    imports: dict[int, str] = field(default_factory=dict)  # not taken by the tuner yet, by number
    imported: int = 0  # results of other experiments: how often a user brought some

    # Of the moment, and no part of what is true of the experiment:
    dirty: dict[TrialId, None] = field(default_factory=dict)  # touched since the last commit
    trigger: Trigger | None = field(default=None, compare=False, repr=False)  # of the next moves
    trace: list[Move] | None = field(default=None, compare=False, repr=False)  # if wanted

    @property
    def asks_at_most(self) -> int:
        """How many requests may lie between being asked for and delivered; 0: no such bound."""
        bound = self.settings.asks_at_most
        return bound + self.asked_more if bound else 0

    @property
    def lookahead(self) -> int:
        """How many requests may be blocked before no further one is opened. Even 0 leaves
        room for one: nobody knows whether a request will wait before it is asked."""
        return max(1, self.settings.lookahead + self.lookahead_extra)
