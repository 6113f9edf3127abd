"""The protocol of backends for other packages: all that such a package needs and may rely on.

``docs/backends.md`` is the page to this module. Names in ``__all__`` change only as
``CHANGELOG.md`` announces; :data:`PROTOCOL` grows when a platform for the version before would not
work any more, and a platform of another version is refused by name.
"""

from __future__ import annotations

from dispatcher.backends.agents import (
    AgentEnded,
    AttendedVisit,
    Called,
    Told,
    Visit,
)
from dispatcher.backends.service import ServiceBackend
from dispatcher.backends.ssh import Archives
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
from dispatcher.experiment.planned import PlannedWorker, distinct_names
from dispatcher.experiment.plugged import GROUP, PROTOCOL
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.service import ServiceConfig
from dispatcher.platforms.files import files_in
from dispatcher.platforms.given import Given
from dispatcher.platforms.platform import AgentPlatform, BackendPlatform, Platform, Reach
from dispatcher.ports import AttemptFiles, FileEntry, FileList, FilePiece
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.agent.link.path_mapping import on_another_host
from trial_runtime.endpoint import Endpoint

__all__ = [
    "GROUP",
    "PROTOCOL",
    "AgentConfig",
    "AgentEnded",
    "AgentPlatform",
    "Archives",
    "AttemptEnded",
    "AttemptFiles",
    "AttemptStarted",
    "AttendedVisit",
    "BackendError",
    "BackendPlatform",
    "Called",
    "Count",
    "CountOrZero",
    "Device",
    "Duration",
    "EndReason",
    "Endpoint",
    "Event",
    "FileEntry",
    "FileList",
    "FilePiece",
    "FinalReported",
    "Given",
    "Grace",
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
    "ResolvedPath",
    "Section",
    "ServiceBackend",
    "ServiceConfig",
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
    "WorkerHeard",
    "WorkerId",
    "WorkerJoined",
    "WorkerLost",
    "WorkerOffers",
    "WorkerSuspect",
    "choice_reader",
    "distinct_names",
    "files_in",
    "on_another_host",
]
