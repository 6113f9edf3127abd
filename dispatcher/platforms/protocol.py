"""The protocol of backends for other packages: all that such a package needs and may rely on.

``docs/backends.md`` is the page to this module. Names in ``__all__`` change only as
``CHANGELOG.md`` announces; :data:`PROTOCOL` grows when a platform for the version before would not
work any more, and a platform of another version is refused by name.
"""

from __future__ import annotations

from dispatcher.core.actions import LaunchWorker, StartAttempt, StopAttempt, WorkerAction
from dispatcher.core.events import (
    AttemptEnded,
    AttemptStarted,
    Event,
    FinalReported,
    MetricReported,
    WeightsPublished,
    WorkerHeard,
    WorkerJoined,
    WorkerLost,
    WorkerOffers,
    WorkerSuspect,
    WorkerWaits,
)
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Weights
from dispatcher.core.resources import Device, Offer
from dispatcher.errors import (
    BackendError,
    PassingBackendError,
    PermanentBackendError,
    ProtocolError,
)
from dispatcher.experiment.addresses import HeadAddress, dialed
from dispatcher.experiment.fields import (
    Count,
    CountOrZero,
    Duration,
    Grace,
    ResolvedPath,
    Section,
    Size,
    Switch,
    Text,
    choice_reader,
)
from dispatcher.experiment.needs import OfferedResources
from dispatcher.experiment.platform_base import KeyProblem, Reach
from dispatcher.experiment.plugged import GROUP, PROTOCOL
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.service import PlannedWorker, ServiceConfig, distinct_names
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.agents.attended import AttendedVisit, Called, Told
from dispatcher.platforms.agents.visit import AgentEnded, Visit
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Allocator,
    Bounds,
    Gone,
)
from dispatcher.platforms.allocations.section import Allocations, AllocationService
from dispatcher.platforms.archives import Archives
from dispatcher.platforms.driver import Driver, Drivers
from dispatcher.platforms.files import files_in
from dispatcher.platforms.given import Given, ServiceGiven
from dispatcher.platforms.host import ReachableHost
from dispatcher.platforms.platform import (
    AgentPlatform,
    AllocationPlatform,
    BackendPlatform,
    Platform,
)
from dispatcher.platforms.services.protocol import ServiceBackend
from dispatcher.platforms.worker_files import WorkerFiles
from dispatcher.ports import AttemptFiles, FileEntry, FileList, FilePiece
from trial_runtime.agent.config import AgentConfig, TrialSpec, encode_config
from trial_runtime.agent.link.path_mapping import on_another_host
from trial_runtime.agent.processes.record import write_private
from trial_runtime.endpoint import Endpoint
from tuners.plain_json import JsonPath

__all__ = [
    "GROUP",
    "PROTOCOL",
    "AgentConfig",
    "AgentEnded",
    "AgentPlatform",
    "Allocation",
    "AllocationOrder",
    "AllocationPlatform",
    "AllocationService",
    "AllocationState",
    "Allocations",
    "Allocator",
    "Archives",
    "AttemptEnded",
    "AttemptFiles",
    "AttemptStarted",
    "AttendedVisit",
    "BackendError",
    "BackendPlatform",
    "Bounds",
    "Called",
    "Count",
    "CountOrZero",
    "Device",
    "Driver",
    "Drivers",
    "Duration",
    "EndReason",
    "Endpoint",
    "Event",
    "FileEntry",
    "FileList",
    "FilePiece",
    "FinalReported",
    "Finding",
    "Given",
    "Gone",
    "Grace",
    "HeadAddress",
    "JsonPath",
    "KeyProblem",
    "LaunchWorker",
    "MetricReported",
    "Misfit",
    "Offer",
    "OfferedResources",
    "PassingBackendError",
    "PermanentBackendError",
    "PlannedWorker",
    "Platform",
    "ProtocolError",
    "Reach",
    "ReachableHost",
    "ResolvedPath",
    "Section",
    "ServiceBackend",
    "ServiceConfig",
    "ServiceGiven",
    "Severity",
    "Size",
    "StartAttempt",
    "StopAttempt",
    "Switch",
    "Text",
    "Told",
    "TrialId",
    "TrialSpec",
    "Visit",
    "Weights",
    "WeightsPublished",
    "WorkerAction",
    "WorkerFiles",
    "WorkerHeard",
    "WorkerId",
    "WorkerJoined",
    "WorkerLost",
    "WorkerOffers",
    "WorkerSuspect",
    "WorkerWaits",
    "choice_reader",
    "dialed",
    "distinct_names",
    "encode_config",
    "files_in",
    "on_another_host",
    "write_private",
]
