"""Facts about workers and the attempts they run. Those of attempts are the agents' own types:
:mod:`trial_runtime.facts`."""

from dataclasses import dataclass
from typing import TypeAlias

from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.resources import Offer
from trial_runtime.facts import AttemptEnded as AttemptEnded
from trial_runtime.facts import AttemptStarted as AttemptStarted
from trial_runtime.facts import EndReason
from trial_runtime.facts import FinalReported as FinalReported
from trial_runtime.facts import MetricReported as MetricReported
from trial_runtime.facts import VersionOffered as VersionOffered
from trial_runtime.facts import WeightsPublished as WeightsPublished


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
    place was taken back by whoever lends it, or is not needed; nobody is to blame. ``ends_as``: how
    what ran there ended, if that is known; with several of them nobody knows whose doing it was."""

    worker: WorkerId
    reason: str
    hopeless: bool = False
    kept_out: bool = False
    planned: bool = False
    ends_as: EndReason | None = None


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
class LastMetricKept:
    """The newest intermediate metric of an attempt that was to be stopped early and is about to
    end: its trial's result may be made of it. The engine applies it before the event that brings
    the end (:func:`dispatcher.core.judged_by`), so that a replay needs no metrics."""

    trial: TrialId
    attempt: int
    value: str


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
