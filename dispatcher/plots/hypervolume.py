"""The hypervolume over time: how far the front has come, in one number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dispatcher import queries
from dispatcher.errors import UserError
from dispatcher.plots.points import Points, points_of
from dispatcher.plots.sampling import spread
from dispatcher.plots.shapes import Hypervolume
from dispatcher.plots.volume import sweeps, volume_of
from dispatcher.queries import ExperimentReader, OptimizeMode
from dispatcher.queries.objectives import bounded

#: Sweeps at most, some ten microseconds each, and results at which it grew that are returned.
MOST_SWEEPS: Final = 200_000
MOST_STEPS: Final = 2_000


def hypervolume(
    reader: ExperimentReader, *, objectives: Sequence[str] = (), reference: Sequence[str] = ()
) -> Hypervolume:
    """Show how the hypervolume of the front grew with the results. Trials that are not within the
    bounds of the experiment count for nothing.

    Args:
        reader: the experiment.
        objectives: numbers in the final result, as ``accuracy`` or ``latency:minimize``; empty:
            those of the experiment.
        reference: where the volume begins, as ``latency:50``; of objectives that are not named it
            is their bound, else the worst result.

    Raises:
        UserError: there is one objective only, or no result has such a number, the reference cannot
            be read, or the front is too large for so many objectives.
    """
    with reader.moment():
        cursor = queries.cursor_now(reader)
        found = points_of(reader, objectives)
        begun = reader.row("SELECT min(at) FROM journal")
        rows = reader.rows("SELECT id, ended_at FROM trials WHERE told IS NOT NULL")
    start = float(begun[0] or 0.0) if begun is not None else 0.0
    ended = {row["id"]: row["ended_at"] for row in rows}
    within = [at for at, kept in enumerate(found.kept) if kept]
    within.sort(key=lambda at: (ended[found.trials[at]] or math.inf, found.trials[at]))
    heights = found.heights[within]
    zero = _reference(reader, found, heights, reference)
    above = heights - zero * found.signs
    grew, volumes, left_out = _growth(above)
    notes = list(found.notes)
    if left_out:
        notes.append(f"{left_out:,} results at which it grew are left out, evenly")
    trials = [found.trials[within[at]] for at in grew]
    return Hypervolume(
        reader.id, reader.name, cursor, notes, found.metrics, found.objectives,
        [float(one) + 0.0 for one in zero], len(within), trials, [at + 1 for at in grew],
        [max(0.0, float(ended[one] or start) - start) for one in trials], volumes,
    )  # fmt: skip


def _reference(
    reader: ExperimentReader,
    points: Points,
    heights: NDArray[np.float64],
    given: Sequence[str],
) -> NDArray[np.float64]:
    """Return the point at which the volume begins, in the objectives' own units."""
    names = [one.name for one in points.objectives]
    numbers = _numbers(given, names)
    bounds = {one.name: one for one in bounded(reader)}
    worst = heights.min(axis=0) * points.signs if len(heights) else np.zeros(len(names))
    for at, one in enumerate(points.objectives):
        bound = bounds.get(one.name)
        if bound is not None and bound.is_most is (one.mode is OptimizeMode.MINIMIZE):
            assert bound.bound is not None
            worst[at] = bound.bound
        worst[at] = numbers.get(one.name, worst[at])
    return worst


def _numbers(given: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in given:
        name, _, word = text.rpartition(":")
        try:
            number = float(word)
        except ValueError:
            number = math.nan
        if not name or not math.isfinite(number):
            raise UserError(
                f"{text[:200]!r} is no reference", hint="write a name and a number: latency:50"
            )
        if name not in names:
            raise UserError(
                f"the reference names {name[:200]!r}, which is no objective",
                hint=f"objectives are: {', '.join(names) or 'none'}",
            )
        found[name] = number
    return found


def _growth(above: NDArray[np.float64]) -> tuple[list[int], list[float], int]:
    """Return the places at which the volume grew, what it was then, and how many are left out."""
    grew, largest = [], 0
    for at, front in _fronts(above):
        grew.append(at)
        largest = max(largest, len(front))
    if not grew:
        return [], [], 0
    each = sweeps(largest, above.shape[1])
    if each > MOST_SWEEPS:
        raise UserError(
            f"a front of {largest:,} trials is too large for a volume of {above.shape[1]} "
            "objectives",
            hint="choose two or three by --objective",
        )
    most = min(MOST_STEPS, MOST_SWEEPS // each)
    # The last one in any case: it is what the search has come to.
    taken = set(spread(grew[::-1], most, 1))
    volumes = {at: volume_of(front) for at, front in _fronts(above) if at in taken}
    return [*volumes], [*volumes.values()], len(grew) - len(volumes)


def _fronts(above: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield each place at which a point joins the front, and the front from then on."""
    front = np.empty((0, above.shape[1]))
    for at, point in enumerate(above):
        if not (point > 0).all() or (front >= point).all(axis=1).any():
            continue
        front = np.vstack([front[~(front <= point).all(axis=1)], point])
        yield at, front
