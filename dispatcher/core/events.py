"""Facts that reach the core, in the past tense. Each is journalled, except where it says not.

Texts (``parameters``, ``value``) are JSON. An event says who did what; when it happened is
given to :func:`dispatcher.core.apply` beside it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Weights
from dispatcher.core.resources import Needs, Offer
from dispatcher.core.settings import Settings

# -- the experiment ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExperimentCreated:
    """The first event of every journal."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class HeadStarted:
    """A head took the lead; epochs grow by one. Peers of the head before are not known yet."""

    epoch: int


@dataclass(frozen=True, slots=True)
class SettingsUpdated:
    """A user changed limits while the experiment ran."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class SearchSpaceUpdated:
    """A user changed the search space while the experiment ran."""

    search_space: str


class StopKind(StrEnum):
    """How an experiment is stopped. Each leaves a state that can be resumed."""

    DRAIN = "drain"  # what runs may finish
    NOW = "now"  # attempts are stopped with their grace and run again after a resume


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A user, a signal or a limit ended the experiment. ``grace_s`` replaces the file's."""

    kind: StopKind
    reason: str
    grace_s: float | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; sent when :func:`dispatcher.core.next_deadline` is due."""


@dataclass(frozen=True, slots=True)
class DiskLow:
    """The file system of ``place`` (a folder) has less room than is kept in reserve. No new
    request or attempt is started until :class:`DiskRecovered`; what runs goes on."""

    place: str
    free_bytes: int
    needed_bytes: int


@dataclass(frozen=True, slots=True)
class DiskRecovered:
    """There is room on the file system of ``place`` again."""

    place: str
    free_bytes: int


# -- the tuner host ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TunerHostReady:
    """The tuner is built (and restored) and takes requests."""


@dataclass(frozen=True, slots=True)
class TunerHostLost:
    """The tuner host's process ended or went silent. ``fatal``: the tuner cannot be built,
    so starting it again would change nothing."""

    reason: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class WaitStarted:
    """``wait_for`` was called in request ``trial``; ``ticket`` (from 1) tells its waits apart.
    With mode ``version`` it is ``wait_for_version``: for ``version`` of ``store``, or (0) for one
    that its only parent publishes."""

    trial: TrialId
    ticket: int
    parents: tuple[TrialId, ...]
    mode: str = "all"
    store: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class WaitGivenUp:
    """A wait ended without an answer of ours: its timeout passed, or it was cancelled."""

    trial: TrialId
    ticket: int


@dataclass(frozen=True, slots=True)
class ForeignWaitSeen:
    """The request's thread stands still in something that is not ours: an author's own Event,
    a queue, a sleep. It counts as blocked until :class:`ForeignWaitOver` or its answer."""

    trial: TrialId


@dataclass(frozen=True, slots=True)
class ForeignWaitOver:
    """The thread of a request in a foreign wait moves again."""

    trial: TrialId


@dataclass(frozen=True, slots=True)
class Proposed:
    """``generate_parameters`` returned. Paths are canonical and relative to the weights root;
    a restore path outside it (a declared read root) is absolute. ``needs`` are this trial's own;
    None: those of the experiment. ``reads``: versions of shared stores, by name and number."""

    trial: TrialId
    parameters: str
    save_path: str | None = None
    restore_path: str | None = None
    needs: Needs | None = None
    reads: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class VersionsHeld:
    """The tuner may pin these versions of a shared store for trials to come, and of that store no
    others of those that it held before."""

    store: str
    numbers: tuple[int, ...]


class RequestEnd(StrEnum):
    """Why a request ended without parameters."""

    ERROR = "error"  # the tuner raised; ``text`` holds the traceback
    NONSENSE = "nonsense"  # it returned what cannot be parameters; ``text`` says why
    ABANDONED = "abandoned"  # ParentFailed, UnknownParent or WaitCancelled went uncaught
    NOT_NOW = "not now"  # NoMoreTrialError
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A request ended without parameters. ``parent`` is the parent that failed it, if one did."""

    trial: TrialId
    kind: RequestEnd
    text: str = ""
    parent: TrialId | None = None


@dataclass(frozen=True, slots=True)
class ResultDelivered:
    """``receive_trial_result`` returned, or raised: ``error`` holds the traceback."""

    trial: TrialId
    error: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryStandsStill:
    """``receive_trial_result`` or ``trial_end`` has stood still for a while: it may wait for a
    lock that a waiting request holds. Nothing follows but that a stall can be named."""

    trial: TrialId


@dataclass(frozen=True, slots=True)
class EndDelivered:
    """``trial_end`` returned, or raised, and the gate was opened."""

    trial: TrialId
    error: str = ""


@dataclass(frozen=True, slots=True)
class StacksReported:
    """What the blocked tuner threads are doing, one text per request (not journalled)."""

    stacks: dict[int, str]


@dataclass(frozen=True, slots=True)
class TunerStateTaken:
    """The tuner's ``state()`` as JSON text, exact as of the events before it. Not journalled:
    it is kept as a snapshot under the number of the row before it."""

    state: str


# -- workers and attempts ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerJoined:
    """An agent said hello. ``holds`` are the (trial, attempt) pairs it runs or has words of
    to hand in; whatever else we believed to be there is lost. ``offer``: what it has beside
    slots; None if it does not say. ``domain``: the storage domain its backend puts it in."""

    worker: WorkerId
    slots: int
    holds: tuple[tuple[TrialId, int], ...] = ()
    offer: Offer | None = None
    domain: str = ""


@dataclass(frozen=True, slots=True)
class WorkerOffers:
    """What a worker has for trials is another than it said before: a stranger's process on a
    device, a device that fell off the bus, a copy of weights on its disk. What runs goes on."""

    worker: WorkerId
    offer: Offer


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """An agent is gone, and with it all it ran; or it cannot be had in the first place.
    ``hopeless``: trying again soon mends nothing. ``kept_out``: it is there and may not join
    before its host is mended, for which it looks by itself; that is no loss."""

    worker: WorkerId
    reason: str
    hopeless: bool = False
    kept_out: bool = False


@dataclass(frozen=True, slots=True)
class WorkerSuspect:
    """A worker that was alive has been silent for ``silent_s``. What it runs goes on; nothing
    new is placed there until it is heard of, or lost."""

    worker: WorkerId
    silent_s: float


@dataclass(frozen=True, slots=True)
class WorkerHeard:
    """A suspect worker speaks again, and nothing of it was lost."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """The attempt's process is there."""

    trial: TrialId
    attempt: int
    pid: int = 0


@dataclass(frozen=True, slots=True)
class MetricReported:
    """An intermediate metric. Not journalled as an event: the metrics table is its journal."""

    trial: TrialId
    attempt: int
    seq: int
    value: str


@dataclass(frozen=True, slots=True)
class FinalReported:
    """The final metric. A second one is recorded and not counted."""

    trial: TrialId
    attempt: int
    seq: int
    value: str


@dataclass(frozen=True, slots=True)
class WeightsPublished:
    """The trial wrote complete weights and told their digest. The newest one counts."""

    trial: TrialId
    attempt: int
    seq: int
    weights: Weights


@dataclass(frozen=True, slots=True)
class VersionOffered:
    """The trial wrote what would be version ``base + 1`` of a shared store, and asks whether it
    is. ``path`` is relative to the folder of the experiment's stores. Said again until answered."""

    trial: TrialId
    attempt: int
    seq: int
    store: str
    base: int
    path: str
    digest: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """The attempt's process is gone. ``weights`` are plain files its agent found at the save
    path, synced and digested."""

    trial: TrialId
    attempt: int
    reason: EndReason
    exit_code: int | None = None
    signal: int | None = None
    text: str = ""
    weights: Weights | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RemovalAnnounced:
    """The weight keeper wants to delete the weights of these trials."""

    trials: tuple[TrialId, ...]


@dataclass(frozen=True, slots=True)
class StoresReviewed:
    """The weight keeper looked through the shared stores, and wants those versions gone that
    nothing needs. ``keep``: how many of the newest stay in each; 0: as the settings say."""

    keep: int = 0


# -- users ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrialSubmitted:
    """A user proposed parameters by hand."""

    parameters: str
    save_path: str | None = None
    restore_path: str | None = None
    needs: Needs | None = None
    reads: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TrialStopRequested:
    """A user killed a trial (``KILLED``), or an assessor stopped it (``STOPPED_EARLY``)."""

    trial: TrialId
    reason: EndReason


@dataclass(frozen=True, slots=True)
class DataImported:
    """A user has results of another experiment for the tuner (``data``: JSON text)."""

    data: str


@dataclass(frozen=True, slots=True)
class ImportDelivered:
    """``import_data`` returned; ``error`` is a traceback, which counts as returned. ``number``
    counts from 0 in the order in which they came."""

    number: int
    error: str = ""


Event: TypeAlias = (
    ExperimentCreated
    | HeadStarted
    | SettingsUpdated
    | SearchSpaceUpdated
    | StopRequested
    | Tick
    | DiskLow
    | DiskRecovered
    | TunerHostReady
    | TunerHostLost
    | WaitStarted
    | WaitGivenUp
    | ForeignWaitSeen
    | ForeignWaitOver
    | Proposed
    | RequestFailed
    | VersionsHeld
    | ResultDelivered
    | DeliveryStandsStill
    | EndDelivered
    | StacksReported
    | TunerStateTaken
    | WorkerJoined
    | WorkerOffers
    | WorkerLost
    | WorkerSuspect
    | WorkerHeard
    | AttemptStarted
    | MetricReported
    | FinalReported
    | WeightsPublished
    | VersionOffered
    | AttemptEnded
    | RemovalAnnounced
    | StoresReviewed
    | TrialSubmitted
    | TrialStopRequested
    | DataImported
    | ImportDelivered
)

#: What the tuner host may say; anything else from it is a protocol error.
HOST_EVENTS = (
    TunerHostReady,
    WaitStarted,
    WaitGivenUp,
    ForeignWaitSeen,
    ForeignWaitOver,
    Proposed,
    RequestFailed,
    VersionsHeld,
    ResultDelivered,
    DeliveryStandsStill,
    EndDelivered,
    StacksReported,
    TunerStateTaken,
    TrialStopRequested,  # by the assessor
    ImportDelivered,
)

#: Events that leave no row in the journal.
NOT_JOURNALLED = (MetricReported, StacksReported, TunerStateTaken)
