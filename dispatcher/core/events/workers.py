"""Facts about workers and the attempts they run."""

from dataclasses import dataclass
from typing import TypeAlias

from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Weights
from dispatcher.core.resources import Offer


@dataclass(frozen=True, slots=True)
class WorkerJoined:
    """An agent has joined. ``holds`` are the (trial, attempt) pairs that it runs or has messages of
    to hand in; whatever else we believed to be there is lost. ``offer``: its resources beside
    slots; None if it does not report them. ``domain``: the storage domain its backend puts it
    in."""

    worker: WorkerId
    slots: int
    holds: tuple[tuple[TrialId, int], ...] = ()
    offer: Offer | None = None
    domain: str = ""


@dataclass(frozen=True, slots=True)
class WorkerOffers:
    """A worker's resources have changed: a foreign process is on a device, a device fell off the
    bus, a copy of weights is on its disk. What runs goes on."""

    worker: WorkerId
    offer: Offer


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """An agent is gone, and with it all it ran; or it cannot be had in the first place.
    ``hopeless``: trying again soon changes nothing. ``kept_out``: it is there and may not join
    before its host is repaired, for which it looks by itself; that is no loss. ``planned``: its
    place was taken back by whoever lends it, or is not needed; nobody is to blame."""

    worker: WorkerId
    reason: str
    hopeless: bool = False
    kept_out: bool = False
    planned: bool = False


@dataclass(frozen=True, slots=True)
class WorkerWaits:
    """A worker waits for a place where its agent can run, such as in a scheduler's queue; it is no
    loss, however long it takes. ``reason``: in the words of whoever lends the place; empty if none
    is asked for, since there is nothing to run. ``waited_s``: for how long already."""

    worker: WorkerId
    reason: str
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkerSuspect:
    """A worker that was alive has been silent for ``silent_s``. What it runs goes on; nothing new
    is placed there until it answers again, or is lost."""

    worker: WorkerId
    silent_s: float


@dataclass(frozen=True, slots=True)
class WorkerHeard:
    """A suspect worker has answered again, and nothing of it was lost."""

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
class LastMetricKept:
    """The newest intermediate metric of an attempt that was to be stopped early and is about to
    end: its trial's result may be made of it. The engine applies it before the event that brings
    the end (:func:`dispatcher.core.judged_by`), so that a replay needs no metrics."""

    trial: TrialId
    attempt: int
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
    """The trial wrote complete weights and reported their digest. The newest one counts."""

    trial: TrialId
    attempt: int
    seq: int
    weights: Weights


@dataclass(frozen=True, slots=True)
class VersionOffered:
    """The trial wrote what would be version ``base + 1`` of a shared store, and asks whether it is.
    ``path`` is relative to the folder of the experiment's stores. Sent again until answered."""

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
    """The attempt's process is gone. ``weights`` are plain files that its agent found at the save
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


WorkerEvent: TypeAlias = (
    WorkerJoined
    | WorkerOffers
    | WorkerLost
    | WorkerWaits
    | WorkerSuspect
    | WorkerHeard
    | AttemptStarted
    | MetricReported
    | LastMetricKept
    | FinalReported
    | WeightsPublished
    | VersionOffered
    | AttemptEnded
)
