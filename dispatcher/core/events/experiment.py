"""Facts about the experiment itself: its beginning, its heads, its settings, its end, its disks."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from dispatcher.core.settings import Settings


@dataclass(frozen=True, slots=True)
class ExperimentCreated:
    """The first event of every journal."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class HeadStarted:
    """A head took the lead; epochs grow by one. Peers of the head before are not known yet.
    ``settings``: those of the file, if they were changed while nobody led, or by an upgrade."""

    epoch: int
    settings: Settings | None = None


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


ExperimentEvent: TypeAlias = (
    ExperimentCreated
    | HeadStarted
    | SettingsUpdated
    | SearchSpaceUpdated
    | StopRequested
    | Tick
    | DiskLow
    | DiskRecovered
)
