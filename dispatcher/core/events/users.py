"""Requests as facts: by users, by an assessor, by the weight keeper."""

from dataclasses import dataclass
from typing import TypeAlias

from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.core.resources import Needs


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
class RemovalAnnounced:
    """The weight keeper wants to delete the weights of these trials."""

    trials: tuple[TrialId, ...]


@dataclass(frozen=True, slots=True)
class StoresReviewed:
    """The weight keeper looked through the shared stores, and wants those versions gone that
    nothing needs. ``keep``: how many of the newest stay in each; 0: as the settings say.
    ``question``: a number that the answer bears."""

    keep: int = 0
    question: int = 0


Wish: TypeAlias = (
    TrialSubmitted | TrialStopRequested | DataImported | RemovalAnnounced | StoresReviewed
)
