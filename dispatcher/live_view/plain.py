"""Progress as plain lines, for logs and pipes: one at intervals, and one for each new best."""

from __future__ import annotations

import time

from dispatcher.live_view.scene import Scene
from dispatcher.terminal import formatting

#: Seconds between two lines without a new best.
EVERY_S = 10.0


class PlainProgress:
    """Turns scenes into lines; most scenes give none."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._last_at: float | None = None
        self._best: float | None = None
        self._phase = ""

    def lines(self, scene: Scene, now: float) -> list[str]:
        """Return the lines to print at ``now`` (monotonic seconds)."""
        if scene.snapshot is None:
            return []
        due = self._last_at is None or now - self._last_at >= self._every_s
        best = scene.best.value if scene.best is not None else None
        changed = best != self._best or scene.snapshot["phase"] != self._phase
        # New bests may come every few milliseconds: one second between lines at least.
        if not due and not (changed and now - (self._last_at or 0.0) >= 1.0):
            return []
        self._last_at, self._best, self._phase = now, best, scene.snapshot["phase"]
        return [f"{clock()}  {summary(scene)}"]


def summary(scene: Scene) -> str:
    """Return one line: progress, running trials, the best, the rate, the time left."""
    snapshot = scene.snapshot
    assert snapshot is not None
    total, counts = snapshot["max_trials"], snapshot["counts"]
    done = (
        f"{snapshot['ended']}/{total} trials"
        if total
        else formatting.count(snapshot["ended"], "trial")
    )
    parts = [done, f"{counts['running']} running"]
    waiting = counts["blocked"] + counts["held"]
    if waiting:
        parts.append(f"{waiting} waiting")
    if scene.best is not None:
        parts.append(f"best {formatting.number(scene.best.value)} (trial {scene.best.id})")
    if scene.per_minute is not None:
        parts.append(f"{scene.per_minute:.3g}/min")
    if scene.left_s is not None:
        parts.append(f"{formatting.duration(scene.left_s)} left")
    if snapshot["phase"] != "running":
        parts.append(snapshot["phase"])
    return "  ".join(parts)


def clock() -> str:
    """Return the time of day, UTC, for the beginning of a line."""
    return time.strftime("%H:%M:%S", time.gmtime())
