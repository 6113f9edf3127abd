"""Bands in which most curves of many trials lie: a tenth lies below, and a tenth above.

Of ten thousand trials some hundreds are looked at, from the worst to the best evenly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dispatcher.queries.columns import Curve, curve
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import Record

#: Trials that are looked at, and steps of the answer.
MOST_TRIALS: Final = 400
MOST_STEPS: Final = 100

#: Curves that must have come as far for a band there.
_FEWEST: Final = 3

_LOW, _MIDDLE, _HIGH = 0.1, 0.5, 0.9


@dataclass(frozen=True, slots=True)
class CurveBands(Record):
    """The values below which a tenth, half and nine tenths of the curves lie at each of some steps.

    A curve counts from its first point to its last, with the newest value at or before a step.
    ``used`` are the curves, ``trials`` the trials with a result from which they were taken.
    """

    trials: int
    used: int
    steps: tuple[int, ...]
    low: tuple[float, ...]
    middle: tuple[float, ...]
    high: tuple[float, ...]


def curve_bands(reader: ExperimentReader, name: str = "", *, most: int = MOST_TRIALS) -> CurveBands:
    """Read bands of the intermediate metrics of trials that have a result.

    Args:
        reader: the experiment.
        name: of the metric, where values are objects; empty: that by which trials are compared.
        most: trials that are looked at.

    Raises:
        StoreError: the store cannot be read.
    """
    with reader.moment():
        rows = reader.rows("SELECT id FROM trials WHERE number IS NOT NULL ORDER BY number, id")
        every = [int(row["id"]) for row in rows]
        many = min(most, len(every))
        chosen = [every[place * len(every) // many] for place in range(many)]
        curves = [found for one in chosen if (found := curve(reader, one, name)).steps]
    steps = _steps(curves)
    points: list[tuple[int, float, float, float]] = []
    for step in steps:
        values = sorted(value for one in curves if (value := _at(one, step)) is not None)
        if len(values) >= _FEWEST:
            low, middle, high = (_part(values, share) for share in (_LOW, _MIDDLE, _HIGH))
            points.append((step, low, middle, high))
    return CurveBands(
        len(every),
        len(curves),
        tuple(one[0] for one in points),
        tuple(one[1] for one in points),
        tuple(one[2] for one in points),
        tuple(one[3] for one in points),
    )


def _steps(curves: Sequence[Curve]) -> list[int]:
    """Return the steps of the answer: all that there are, or some at even distances."""
    known = sorted({step for one in curves for step in one.steps})
    if len(known) <= MOST_STEPS:
        return known
    first, last = known[0], known[-1]
    return [first + (last - first) * place // (MOST_STEPS - 1) for place in range(MOST_STEPS)]


def _at(one: Curve, step: int) -> float | None:
    """Return the newest value of a curve at a step; None before it begins and after it ends."""
    place = bisect_right(one.steps, step)
    return None if place == 0 or step > one.steps[-1] else one.values[place - 1]


def _part(values: Sequence[float], share: float) -> float:
    """Return the value below which such a share of sorted values lies, between two of them."""
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)
