"""Facts that reach the core, in the past tense; :data:`CATALOGUE` has all that holds for a kind.

Texts (``parameters``, ``value``) are JSON. The time of an event is given to
:func:`dispatcher.core.apply` beside it. All code that applies or makes events imports them from
here, whichever family they are of. Whoever must tell kinds of events apart asks the catalogue, and
keeps no list.
"""

from dataclasses import fields
from typing import Final, TypeAlias

from dispatcher.core.events.experiment import DiskLow as DiskLow
from dispatcher.core.events.experiment import DiskRecovered as DiskRecovered
from dispatcher.core.events.experiment import ExperimentCreated as ExperimentCreated
from dispatcher.core.events.experiment import ExperimentEvent
from dispatcher.core.events.experiment import HeadStarted as HeadStarted
from dispatcher.core.events.experiment import SearchSpaceUpdated as SearchSpaceUpdated
from dispatcher.core.events.experiment import SettingsUpdated as SettingsUpdated
from dispatcher.core.events.experiment import StopKind as StopKind
from dispatcher.core.events.experiment import StopRequested as StopRequested
from dispatcher.core.events.experiment import Tick as Tick
from dispatcher.core.events.row import STAYS, all_but, arrows, targets
from dispatcher.core.events.row import EventRow as EventRow
from dispatcher.core.events.row import Origin as Origin
from dispatcher.core.events.tuner_host import DeliveryStandsStill as DeliveryStandsStill
from dispatcher.core.events.tuner_host import EndDelivered as EndDelivered
from dispatcher.core.events.tuner_host import ForeignWaitOver as ForeignWaitOver
from dispatcher.core.events.tuner_host import ForeignWaitSeen as ForeignWaitSeen
from dispatcher.core.events.tuner_host import HostEvent
from dispatcher.core.events.tuner_host import ImportDelivered as ImportDelivered
from dispatcher.core.events.tuner_host import Proposed as Proposed
from dispatcher.core.events.tuner_host import RequestEnd as RequestEnd
from dispatcher.core.events.tuner_host import RequestFailed as RequestFailed
from dispatcher.core.events.tuner_host import ResultDelivered as ResultDelivered
from dispatcher.core.events.tuner_host import StacksReported as StacksReported
from dispatcher.core.events.tuner_host import TunerHostLost as TunerHostLost
from dispatcher.core.events.tuner_host import TunerHostReady as TunerHostReady
from dispatcher.core.events.tuner_host import TunerStateTaken as TunerStateTaken
from dispatcher.core.events.tuner_host import VersionsHeld as VersionsHeld
from dispatcher.core.events.tuner_host import WaitGivenUp as WaitGivenUp
from dispatcher.core.events.tuner_host import WaitStarted as WaitStarted
from dispatcher.core.events.users import DataImported as DataImported
from dispatcher.core.events.users import RemovalAnnounced as RemovalAnnounced
from dispatcher.core.events.users import StoresReviewed as StoresReviewed
from dispatcher.core.events.users import TrialStopRequested as TrialStopRequested
from dispatcher.core.events.users import TrialSubmitted as TrialSubmitted
from dispatcher.core.events.users import Wish
from dispatcher.core.events.workers import AttemptEnded as AttemptEnded
from dispatcher.core.events.workers import AttemptStarted as AttemptStarted
from dispatcher.core.events.workers import FinalReported as FinalReported
from dispatcher.core.events.workers import LastMetricKept as LastMetricKept
from dispatcher.core.events.workers import MetricReported as MetricReported
from dispatcher.core.events.workers import VersionOffered as VersionOffered
from dispatcher.core.events.workers import WeightsPublished as WeightsPublished
from dispatcher.core.events.workers import WorkerEvent
from dispatcher.core.events.workers import WorkerHeard as WorkerHeard
from dispatcher.core.events.workers import WorkerJoined as WorkerJoined
from dispatcher.core.events.workers import WorkerLost as WorkerLost
from dispatcher.core.events.workers import WorkerOffers as WorkerOffers
from dispatcher.core.events.workers import WorkerSuspect as WorkerSuspect
from dispatcher.core.events.workers import WorkerWaits as WorkerWaits
from dispatcher.core.model import TrialState as S

Event: TypeAlias = ExperimentEvent | HostEvent | TunerHostLost | WorkerEvent | Wish

_HEAD: Final = frozenset({Origin.HEAD})
_USER: Final = frozenset({Origin.USER})
_TUNER: Final = frozenset({Origin.TUNER})
_WORKER: Final = frozenset({Origin.WORKER})

_IN_TUNER: Final = (S.OPEN, S.BLOCKED)
_GONE: Final = frozenset({S.PARKED, S.ENDED})
_WHILE_RUNNING: Final = targets(([S.RUNNING], STAYS))
_NOT_RUNNING: Final = all_but(S.RUNNING)


CATALOGUE: Final[dict[type, EventRow]] = {
    # The tuner: requests and waits
    WaitStarted: EventRow(
        _TUNER,
        targets(([S.OPEN], [S.BLOCKED]), ([S.BLOCKED], [S.OPEN])),
        late=_GONE,
        of_host=True,
        durable=False,
        frees=False,
    ),
    WaitGivenUp: EventRow(  # late: crossed with the gate
        _TUNER,
        targets(([S.BLOCKED], [S.OPEN])),
        late=all_but(S.BLOCKED),
        of_host=True,
        durable=False,
        frees=False,
    ),
    ForeignWaitSeen: EventRow(
        _TUNER,
        targets(([S.OPEN], [S.BLOCKED])),
        late=all_but(S.OPEN),
        of_host=True,
        durable=False,
        frees=False,
    ),
    ForeignWaitOver: EventRow(
        _TUNER,
        targets(([S.BLOCKED], [S.OPEN])),
        late=all_but(S.BLOCKED),
        of_host=True,
        durable=False,
        frees=False,
    ),
    Proposed: EventRow(
        _TUNER,
        targets((_IN_TUNER, [S.QUEUED, S.HELD, S.DELIVERING, S.PARKED, S.ENDED])),
        late=_GONE,
        after_kill=True,
        of_host=True,
        frees=False,
    ),
    RequestFailed: EventRow(
        _TUNER,
        targets((_IN_TUNER, [S.PARKED, S.DELIVERING, S.ENDED])),
        late=_GONE,
        after_kill=True,
        of_host=True,
        frees=False,
    ),
    # The tuner: deliveries. One that took a delivery runs beside the head and goes with the same
    # power; the next one is built from what is on disk, and what a state of the tuner already holds
    # is on disk with that state.
    ResultDelivered: EventRow(
        _TUNER, targets(([S.DELIVERING], STAYS)), of_host=True, durable=False, frees=False
    ),
    DeliveryStandsStill: EventRow(
        _TUNER,
        targets(([S.DELIVERING], STAYS)),
        late=all_but(S.DELIVERING),
        durable=False,
        frees=False,
    ),
    EndDelivered: EventRow(
        _TUNER, targets(([S.DELIVERING], [S.ENDED])), of_host=True, durable=False, frees=False
    ),
    # The tuner: its host, what it holds, what it has taken in
    TunerHostReady: EventRow(_TUNER, durable=False),
    TunerHostLost: EventRow(_TUNER),
    VersionsHeld: EventRow(_TUNER, frees=False),
    ImportDelivered: EventRow(_TUNER),
    StacksReported: EventRow(_TUNER, journalled=False),
    TunerStateTaken: EventRow(_TUNER, journalled=False),
    # Attempts
    AttemptStarted: EventRow(
        _WORKER, _WHILE_RUNNING, late=_NOT_RUNNING, durable=False, frees=False
    ),
    MetricReported: EventRow(
        _WORKER, _WHILE_RUNNING, late=_NOT_RUNNING, journalled=False, frees=False
    ),
    LastMetricKept: EventRow(_HEAD, _WHILE_RUNNING, late=_NOT_RUNNING, frees=False),
    FinalReported: EventRow(_WORKER, _WHILE_RUNNING, late=_NOT_RUNNING, frees=False),
    WeightsPublished: EventRow(_WORKER, _WHILE_RUNNING, late=_NOT_RUNNING, frees=False),
    VersionOffered: EventRow(_WORKER, _WHILE_RUNNING, late=_NOT_RUNNING, frees=False),
    AttemptEnded: EventRow(
        _WORKER,
        targets(([S.RUNNING], [S.QUEUED, S.BACKOFF, S.DELIVERING])),
        late=_NOT_RUNNING,
    ),
    # Workers
    WorkerJoined: EventRow(
        _WORKER, others=arrows(([S.RUNNING], [S.QUEUED, S.BACKOFF, S.DELIVERING]))
    ),
    WorkerLost: EventRow(_WORKER, others=arrows(([S.RUNNING], [S.BACKOFF, S.DELIVERING]))),
    WorkerWaits: EventRow(
        _WORKER, others=arrows(([S.RUNNING], [S.BACKOFF, S.DELIVERING])), durable=False
    ),
    WorkerOffers: EventRow(_WORKER, durable=False),
    WorkerSuspect: EventRow(_WORKER, durable=False),
    WorkerHeard: EventRow(_WORKER, durable=False),
    # Users, an assessor, the weight keeper
    TrialSubmitted: EventRow(
        _USER,
        others=arrows(([None], [S.OPEN]), ([S.OPEN], [S.QUEUED, S.HELD, S.DELIVERING, S.ENDED])),
        frees=False,
    ),
    TrialStopRequested: EventRow(
        _USER | _TUNER,
        targets(
            ([S.OPEN, S.BLOCKED, S.PARKED], [S.ENDED]),
            ([S.HELD, S.QUEUED, S.BACKOFF], [S.DELIVERING]),
            ([S.RUNNING], STAYS),
        ),
        late=frozenset({S.DELIVERING, S.ENDED}),
    ),
    DataImported: EventRow(_USER),
    RemovalAnnounced: EventRow(_HEAD),
    StoresReviewed: EventRow(_HEAD, frees=False),
    # The experiment
    ExperimentCreated: EventRow(_HEAD),
    HeadStarted: EventRow(_HEAD),
    SettingsUpdated: EventRow(_USER),
    SearchSpaceUpdated: EventRow(_USER),
    StopRequested: EventRow(_USER | _HEAD),
    Tick: EventRow(_HEAD),
    DiskLow: EventRow(_HEAD, durable=False),
    DiskRecovered: EventRow(_HEAD, durable=False),
}

#: Kinds that speak of one attempt of their trial.
OF_ATTEMPTS: Final = frozenset(
    kind for kind in CATALOGUE if "attempt" in (field.name for field in fields(kind))
)


def reported_by(origin: Origin) -> frozenset[type]:
    """The kinds of events that may come from there."""
    return frozenset(kind for kind, row in CATALOGUE.items() if origin in row.by)


def is_journalled(event: Event) -> bool:
    """Whether the event has a row in the journal."""
    return CATALOGUE[type(event)].journalled
