"""The state of an experiment for a live view, taken from a running head and its store."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dispatcher.control.client import HeadClient
from dispatcher.errors import BequeathError
from dispatcher.folders.status import is_led
from dispatcher.queries import TrialSummary
from dispatcher.terminal import formatting
from dispatcher.terminal.leaderboard import leaders

#: Seconds over which the rate of trials is taken: long enough for trials of minutes, and
#: short enough to follow a change of concurrency.
RATE_WINDOW_S = 120.0

#: Seconds to wait for the head's reply.
LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment of an experiment. ``snapshot`` is the head's, None while no head answers."""

    name: str
    snapshot: dict[str, Any] | None
    best: TrialSummary | None
    per_minute: float | None
    left_s: float | None  # None: unknown
    silent: str = ""  # why there is no snapshot


class Pace:
    """Trials per minute over a recent window, from counts at intervals."""

    def __init__(self, window_s: float = RATE_WINDOW_S) -> None:
        self._window_s = window_s
        self._seen: deque[tuple[float, int]] = deque()

    def look(self, now: float, ended: int) -> float | None:
        """Take a count; return the rate, or None while there are too few counts."""
        if self._seen and ended < self._seen[-1][1]:
            self._seen.clear()  # another head, another count
        self._seen.append((now, ended))
        while len(self._seen) > 2 and now - self._seen[1][0] >= self._window_s:
            self._seen.popleft()
        since, first = self._seen[0]
        if now - since < 1.0 or ended == first:
            return None
        return 60.0 * (ended - first) / (now - since)


def time_left(snapshot: dict[str, Any], per_minute: float | None) -> float | None:
    """Return the seconds until the first limit: of trials, at this rate, or of time."""
    bounds = []
    counts = snapshot["counts"]
    under_way = ("open", "queued", "running", "backoff", "delivering")
    stands = (counts["blocked"] or counts["held"]) and not any(counts[key] for key in under_way)
    if snapshot["max_trials"] is not None and per_minute and not stands:
        bounds.append(60.0 * max(0, snapshot["max_trials"] - snapshot["ended"]) / per_minute)
    if snapshot["max_duration_s"] is not None:
        bounds.append(max(0.0, snapshot["max_duration_s"] - snapshot["active_s"]))
    return min(bounds) if bounds else None


class Observer:
    """Polls one experiment, from one thread; ``close`` it at the end.

    A poll takes a quarter of a second at most: a head that is busy answers the next one, and
    a view that is to end does not wait for a head that has ended before it.
    """

    def __init__(
        self, folder: Path, name: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._name = name
        self._clock = clock
        self._pace = Pace()
        self._client: HeadClient | None = None
        self._last: Scene | None = None
        self._best: TrialSummary | None = None
        self._best_at: int | None = None  # number of ended trials when the best one was read

    def look(self) -> Scene:
        """Return the experiment now, or as last seen. Never raises for a head that is away."""
        try:
            if self._client is None:
                self._client = HeadClient(self._folder, timeout_s=LOOK_S)
            self._last = self._scene(self._client.ask("snapshot"))
        except BequeathError as error:
            if self._last is None or not is_led(self._folder):
                self.close()
                return Scene(self._name, None, self._best, None, None, error.message)
        return self._last

    def _scene(self, snapshot: dict[str, Any]) -> Scene:
        if snapshot["ended"] != self._best_at:
            best = leaders(self._folder, 1)
            self._best, self._best_at = (best[0] if best else None), snapshot["ended"]
        rate = self._pace.look(self._clock(), snapshot["ended"])
        return Scene(self._name, snapshot, self._best, rate, time_left(snapshot, rate))

    def close(self) -> None:
        """Drop the connection; the next poll makes a new one."""
        if self._client is not None:
            self._client.close()
            self._client = None


def ends_of_workers(snapshot: dict[str, Any]) -> list[str]:
    """Return which workers have their place until when, the first to end at first."""
    ends = [(w["ends_in_s"], w["name"]) for w in snapshot["workers"] if w.get("ends_in_s")]
    return [
        f"worker {name} has its place for {formatting.duration(max(0.0, left_s))} more"
        for left_s, name in sorted(ends)
    ]


def troubles_beside(snapshot: dict[str, Any]) -> list[str]:
    """Return the troubles of an experiment that the text of ``why`` does not contain."""
    reason = snapshot["why"]["text"]
    return [text for text in snapshot.get("troubles", ()) if text not in reason]
