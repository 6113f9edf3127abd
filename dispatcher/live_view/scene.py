"""The state of an experiment for a live view, taken from a running head and its store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dispatcher import queries
from dispatcher.control.client import HeadClient
from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.errors import DispatcherError
from dispatcher.experiments.standing import left_by
from dispatcher.folders.status import is_led
from dispatcher.queries import TrialSummary
from dispatcher.terminal import formatting

#: Seconds to wait for the head's reply.
LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment of an experiment. ``snapshot`` is the head's, None while no head answers."""

    name: str
    snapshot: HeadSnapshot | None
    best: TrialSummary | None
    per_minute: float | None
    left_s: float | None  # None: unknown
    silent: str = ""  # why there is no snapshot


class Observer:
    """Polls one experiment, from one thread; ``close`` it at the end.

    A poll takes a quarter of a second at most: a head that is busy answers the next one, and
    a view that is to end does not wait for a head that has ended before it.
    """

    def __init__(self, folder: Path, name: str, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._name = name
        self._clock = clock
        self._client: HeadClient | None = None
        self._last: Scene | None = None
        self._best: TrialSummary | None = None
        self._ends: tuple[float, ...] = ()
        self._read_at: int | None = None  # number of ended trials when these two were read

    def look(self) -> Scene:
        """Return the experiment now, or as last seen. Never raises for a head that is away."""
        try:
            if self._client is None:
                self._client = HeadClient(self._folder, timeout_s=LOOK_S)
            self._last = self._scene(self._client.snapshot())
        except DispatcherError as error:
            if self._last is None or not is_led(self._folder):
                self.close()
                return Scene(self._name, None, self._best, None, None, error.message)
        return self._last

    def _scene(self, snapshot: HeadSnapshot) -> Scene:
        now = self._clock()
        if snapshot.ended != self._read_at and self._read(now):
            self._read_at = snapshot.ended
        rate = queries.rate_of(self._ends, now)
        left_s = left_by(snapshot, rate)
        return Scene(self._name, snapshot, self._best, None if rate is None else 60 * rate, left_s)

    def _read(self, now: float) -> bool:
        """Read what the store knows; false while it cannot be read."""
        try:
            with queries.ExperimentReader.open(self._folder) as reader:
                self._best = next(iter(queries.best(reader, 1)), None)
                self._ends = queries.recent_ends(reader, now)
        except DispatcherError:
            return False
        return True

    def summary(self) -> queries.ExperimentSummary | None:
        """Return what the store knows, without a head; None if it cannot be read."""
        try:
            with queries.ExperimentReader.open(self._folder) as reader:
                return queries.experiment_summary(reader)
        except DispatcherError:
            return None

    def close(self) -> None:
        """Drop the connection; the next poll makes a new one."""
        if self._client is not None:
            self._client.close()
            self._client = None


def ends_of_workers(snapshot: HeadSnapshot) -> list[str]:
    """Return which workers have their place until when, the first to end at first."""
    ends = [(w.ends_in_s, w.name) for w in snapshot.workers if w.ends_in_s]
    return [
        f"worker {name} has its place for {formatting.duration(max(0.0, left_s))} more"
        for left_s, name in sorted(ends)
    ]


def ways_of_workers(snapshot: HeadSnapshot) -> str:
    """Return how many agents reach the head by which way, of those that have several."""
    ways = Counter(worker.way for worker in snapshot.workers if worker.way)
    return ", ".join(f"{many} {way}" for way, many in ways.most_common())


def workers_by_way(snapshot: HeadSnapshot) -> list[tuple[str, list[str]]]:
    """Return the names of the workers that came by each way, the most usual way first."""
    ways: dict[str, list[str]] = {}
    for worker in snapshot.workers:
        if worker.way:
            ways.setdefault(worker.way, []).append(worker.name)
    return sorted(ways.items(), key=lambda item: -len(item[1]))


def troubles_beside(snapshot: HeadSnapshot) -> list[str]:
    """Return the troubles of an experiment that the text of ``why`` does not contain."""
    return [text for text in snapshot.troubles if text not in snapshot.why.text]
