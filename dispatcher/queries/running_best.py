"""The growth of the best value over time and over trials."""

from __future__ import annotations

from dataclasses import dataclass

from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import OptimizeMode, Record


@dataclass(frozen=True, slots=True)
class ProgressPoint(Record):
    """One result in the order in which trials ended; ``best`` is the best one so far."""

    trial: int
    elapsed_s: float  # since the experiment began
    spent_s: float  # wall time of all trials that ended so far, added up
    value: float
    best: float
    improved: bool


@dataclass(frozen=True, slots=True)
class Progress(Record):
    """All results of an experiment."""

    mode: OptimizeMode
    points: tuple[ProgressPoint, ...]

    @property
    def improvements(self) -> tuple[ProgressPoint, ...]:
        """The points that were the best when they came."""
        return tuple(point for point in self.points if point.improved)


def progress(reader: ExperimentReader, mode: OptimizeMode | None = None) -> Progress:
    """Return the delivered results, in the order in which their trials ended."""
    mode = mode or reader.mode
    begun = reader.row("SELECT min(at) FROM journal")
    start = float(begun[0] or 0.0) if begun is not None else 0.0
    rows = reader.rows(
        "SELECT id, number, ended_at, wall_s FROM trials "
        "WHERE told IS NOT NULL AND number IS NOT NULL AND ended_at IS NOT NULL "
        "ORDER BY ended_at, id"
    )
    points: list[ProgressPoint] = []
    best: float | None = None
    spent_s = 0.0
    for row in rows:
        value: float = row["number"]
        improved = mode.better(value, best)
        best = value if improved or best is None else best
        spent_s += row["wall_s"]
        points.append(
            ProgressPoint(row["id"], row["ended_at"] - start, spent_s, value, best, improved)
        )
    return Progress(mode, tuple(points))
