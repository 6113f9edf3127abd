"""The protocol of sinks: what a tracker is given, and what it has to answer.

A package names an object there, a :class:`SinkKind`, under the word that is written as ``kind`` in
the experiment file. It reads its section of the file and makes a :class:`Sink`, which is then
called in one thread. ``docs/sinks.md`` has an example, :mod:`dispatcher.sinks.conformance` tries
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.experiment.sink_base import FileSink, Secret, SinkConfig

__all__ = [
    "BackendError",
    "ExperimentRun",
    "FileSink",
    "Flushed",
    "KeyProblem",
    "PassingBackendError",
    "PermanentBackendError",
    "Point",
    "Secret",
    "Sink",
    "SinkConfig",
    "SinkKind",
    "Surroundings",
    "TrialEnd",
    "TrialRun",
]

Json = Any
"""A value as JSON has them."""

S = TypeVar("S", bound=SinkConfig)


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """The experiment that a sink is fed with.

    Attributes:
        id: its id, which is its folder's name.
        name: as its author calls it; any text.
        created_at: seconds since the epoch.
        folder: the experiment's own, for files that lie within it.
        search_space: as its file has it; empty for a tuner without one.
        maximize: whether higher values are better.
    """

    id: str
    name: str
    created_at: float
    folder: Path
    search_space: Mapping[str, Json]
    maximize: bool


@dataclass(frozen=True, slots=True)
class TrialRun:
    """A trial that has begun. Its text comes from trials and tuners: expect anything in it.

    Attributes:
        trial: its number.
        attempt: the try that counts; an earlier one has left nothing that counts.
        parameters: by name, any JSON values, nested perhaps.
        parent: the trial whose weights it inherits.
        generation: 0 without a parent, else one more than the parent's.
        by_hand: whether a user submitted it.
        worker: where it runs.
        started_at: of this attempt (seconds since the epoch).
    """

    trial: int
    attempt: int
    parameters: Mapping[str, Json]
    parent: int | None
    generation: int
    by_hand: bool
    worker: str
    started_at: float


@dataclass(frozen=True, slots=True)
class Point:
    """A metric that a trial has reported.

    Attributes:
        seq: its number among the messages of the attempt, which grows.
        at: seconds since the epoch.
        value: as reported, a JSON value.
        number: what it is worth to the tuner, if it is worth a number; NaN and infinities occur.
    """

    seq: int
    at: float
    value: Json
    number: float | None


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """The end of a trial; nothing of it changes any more.

    Attributes:
        outcome: a word such as ``succeeded`` or ``failed``.
        success: whether it counts as one.
        value: the number by which it is compared.
        result: the whole of what it reported in the end, a JSON value.
        at: seconds since the epoch.
        error: why it failed; empty if it did not.
        weights_digest: of what it leaves to its children.
        cpu_s: processor seconds.
        wall_s: seconds.
    """

    outcome: str
    success: bool
    value: float | None
    result: Json
    at: float
    error: str
    weights_digest: str
    cpu_s: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class Flushed:
    """The state that a sink wants to be given back when it is made the next time.

    Attributes:
        places: trial → its place, for runs that have begun and not ended.
        memo: anything else; small, since it is written each time.
    """

    places: Mapping[int, Json] = field(default_factory=dict)
    memo: Json = None


class Sink(Protocol):
    """One tracker. Thread: one of its own; methods may block, since nobody waits but this sink.

    Each trial comes as ``begin``, ``points`` (any number of times, none twice), ``end``. After a
    crash, or an error, another sink is made, and what came after the last ``flush`` whose answer
    was kept comes again. So a sink either cuts back to the place that it is given, or takes a point
    that it has already for the same one.

    An error that may pass is a ``PassingBackendError`` (or an ``OSError``): it is tried again with
    growing pauses. Any other stops this sink alone.
    """

    def begin(self, run: TrialRun, place: Json) -> bool:
        """A run begins, or goes on at a place.

        Args:
            run: the trial. An earlier attempt of it may have begun before: that one counts no more.
            place: what :meth:`flush` has answered for this attempt; None if the run begins. What
                was taken behind that place comes again.

        Returns:
            False if there is no such place any more: then the run is begun with None.
        """
        ...

    def points(self, run: TrialRun, points: Sequence[Point]) -> None:
        """Take metrics in the order of ``seq``."""
        ...

    def end(self, run: TrialRun, end: TrialEnd) -> None:
        """Take the end of a run."""
        ...

    def drop(self, trials: Sequence[int]) -> None:
        """Remove runs that have ended: the option ``keep`` leaves the best ones only."""
        ...

    def flush(self) -> Flushed:
        """Return once all that was given is where it belongs: on disk, or at the tracker."""
        ...

    def close(self, status: str) -> None:
        """Give up what is open; nothing more is written, whatever was held.

        Args:
            status: the experiment's, if it is over and all of it was taken; else empty.
        """
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All else that a sink is made with.

    Attributes:
        experiment: whose runs it gets.
        memo: of the sink before, if any.
        secrets: key of the section → the secret that it refers to.
        closed: how many runs have ended and were taken by sinks before.
    """

    experiment: ExperimentRun
    memo: Json
    secrets: Mapping[str, str]
    closed: int = 0


class SinkKind(FileSink[S]):
    """A kind of sink, as the entry point names it.

    Attributes:
        whole: whether runs are given only when they have ended, all at once.
        ends: whether one is made for the end of an experiment without trials, too.
    """

    whole: bool = False
    ends: bool = False

    def target(self, section: S, experiment: ExperimentRun) -> str:
        """Say in some words where the runs go, for people; without secrets."""
        raise NotImplementedError

    def cursor_folder(self, section: S, experiment: ExperimentRun) -> Path | None:
        """The folder of the cursor, if it belongs to what it speaks of; None: the experiment's.

        Args:
            section: as the file has it.
            experiment: whose runs are taken.
        """
        return None

    def sink_for(self, section: S, surroundings: Surroundings) -> Sink:
        """Make a sink, whose tracker may be away: it need not be reached yet.

        Args:
            section: as the file has it.
            surroundings: what else there is.

        Raises:
            BackendError: it cannot be made, now or at all.
        """
        raise NotImplementedError
