"""Facts that reach the core, in the past tense. Each is journalled, except where it says not.

Texts (``parameters``, ``value``) are JSON. The time of an event is given to
:func:`dispatcher.core.apply` beside it. All code that applies or makes events imports them from
here, whichever family they are of.
"""

from typing import TypeAlias, get_args

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

Event: TypeAlias = ExperimentEvent | HostEvent | TunerHostLost | WorkerEvent | Wish

#: Events that the tuner host may report, an assessor's request among them; any other is a protocol
#: error.
HOST_EVENTS: tuple[type, ...] = (*get_args(HostEvent), TrialStopRequested)

#: Events that leave no row in the journal.
NOT_JOURNALLED = (MetricReported, StacksReported, TunerStateTaken)
