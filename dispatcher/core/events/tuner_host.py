"""Facts about the tuner: its host's reports of requests, waits and calls, and its end."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from dispatcher.core.ids import TrialId
from dispatcher.core.resources import Needs


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
    that its only parent publishes. ``answered``: the host knew the answer, so that nobody waits;
    it is recorded all the same, since a trial that a request has waited for is a likely parent."""

    trial: TrialId
    ticket: int
    parents: tuple[TrialId, ...]
    mode: str = "all"
    store: str = ""
    version: int = 0
    answered: bool = False


@dataclass(frozen=True, slots=True)
class WaitGivenUp:
    """A wait ended without an answer of ours: its timeout passed, or it was cancelled."""

    trial: TrialId
    ticket: int


@dataclass(frozen=True, slots=True)
class ForeignWaitSeen:
    """The request's thread stands still in something that is not ours: an author's own Event,
    a queue, a sleep. It counts as blocked until :class:`ForeignWaitOver` or its answer. ``place``:
    the author's line, as a person reads it; empty if it is not known."""

    trial: TrialId
    place: str = ""


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
    """The delivery of ``trial`` has stood still for a while, in its own calls or behind another
    call in the same thread: it may wait for a lock that a waiting request holds. ``at`` says in
    which call and at which line. With ``over`` it moves again. Nothing follows but that a stall
    can be named, and that a drain ends."""

    trial: TrialId
    at: str = ""
    over: bool = False


@dataclass(frozen=True, slots=True)
class EndDelivered:
    """``trial_end`` returned, or raised, and the gate was opened."""

    trial: TrialId
    error: str = ""


@dataclass(frozen=True, slots=True)
class StacksReported:
    """The stacks of the blocked tuner threads, one text per request (not journalled)."""

    stacks: dict[int, str]


@dataclass(frozen=True, slots=True)
class TunerStateTaken:
    """The tuner's ``state()`` as JSON text, exact as of the events before it. Not journalled:
    it is kept as a snapshot under the number of the row before it."""

    state: str


@dataclass(frozen=True, slots=True)
class ImportDelivered:
    """``import_data`` returned; ``error`` is a traceback, which counts as returned. ``number``
    counts from 0 in the order in which they came."""

    number: int
    error: str = ""


#: Events that the tuner host itself may report.
HostEvent: TypeAlias = (
    TunerHostReady
    | WaitStarted
    | WaitGivenUp
    | ForeignWaitSeen
    | ForeignWaitOver
    | Proposed
    | VersionsHeld
    | RequestFailed
    | ResultDelivered
    | DeliveryStandsStill
    | EndDelivered
    | StacksReported
    | TunerStateTaken
    | ImportDelivered
)
