"""Two parameters, and the mean result near each place.

The mean is weighted by a Gaussian of the distance (Nadaraya 1964; Watson 1964), whose width is a
sixteenth of an axis; of choices only the same one counts. Where the nearest trial is three widths
away there is no mean: nothing is made up between trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dispatcher.errors import UserError
from dispatcher.plots.axes import Placed, placed, scaled, unscaled
from dispatcher.plots.choosing import choose
from dispatcher.plots.sampling import DEFAULT, Sample, by_result, sample_of, spread
from dispatcher.plots.shapes import Axis, Contour, ContourLine
from dispatcher.queries import ExperimentReader

Numbers = NDArray[np.float64]

#: Places along an axis of numbers, and the width of the Gaussian as a part of the axis.
PLACES: Final = 33
WIDTH: Final = 1 / 16

#: Distances beyond so many widths count nothing.
REACH: Final = 3.0

#: Trials that are drawn, the best in any case, and lines.
_MOST_POINTS: Final = 1_000
_BEST: Final = 100
_LINES: Final = 7


def contour(
    reader: ExperimentReader,
    *,
    x: str = "",
    y: str = "",
    metric: str = DEFAULT,
    mode: str = "",
    seed: int = 0,
) -> Contour:
    """Show the mean result over two parameters.

    Args:
        reader: the experiment.
        x: a parameter; empty: the most important one that is not ``y``.
        y: likewise.
        metric: the name of a number in the final result.
        mode: ``maximize`` or ``minimize``; empty: as the experiment says.
        seed: of their importance.

    Raises:
        UserError: there is no such parameter or number, or both are the same.
    """
    if x and x == y:
        raise UserError("a contour needs two different parameters", hint=f"x and y are both {x!r}")
    sample = sample_of(reader, metric, mode)
    sample.demand([name for name in (x, y) if name])
    by = "named"
    if not (x and y):
        order = choose(sample, (), len(sample.columns), seed)
        free = [name for name in order.names if name not in (x, y)]
        by = order.by
        x = x or (free.pop(0) if free else "")
        y = y or (free.pop(0) if free else "")
    drawn = sorted(spread(by_result(sample.values, sample.mode), _MOST_POINTS, _BEST))
    if x not in sample.columns or y not in sample.columns:
        notes = [*sample.notes, "trials differ in fewer than two parameters"]
        return _contour(sample, by, None, None, drawn, notes)
    return _contour(sample, by, _placed(sample, x), _placed(sample, y), drawn, sample.notes)


def surface(
    x: Placed, y: Placed, values: Sequence[float]
) -> tuple[list[float], list[float], Numbers]:
    """Return places on both axes, and the mean at each pair of them: a row for each of ``y``, NaN
    where no trial is near.

    Args:
        x: an axis, and where each trial stands on it.
        y: likewise.
        values: the trials' results.
    """
    both = [at for at in range(len(values)) if x.at[at] is not None and y.at[at] is not None]
    grid_x, near_x = _weights(x.axis, [x.at[at] for at in both])
    grid_y, near_y = _weights(y.axis, [y.at[at] for at in both])
    results = np.array([values[at] for at in both], dtype=float)
    weights = near_y @ near_x.T
    shift = results.mean() if len(results) else 0.0
    sums = (near_y * (results - shift)) @ near_x.T
    least = math.exp(-(REACH**2) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return grid_x, grid_y, np.where(weights >= least, sums / weights + shift, np.nan)


def _placed(sample: Sample, name: str) -> Placed:
    return placed(name, sample.columns[name], logarithmic=name in sample.logarithmic)


def _weights(axis: Axis, at: Sequence[float | None]) -> tuple[list[float], Numbers]:
    """Return places on an axis, and for each of them the weight of each trial."""
    if axis.kind == "choice":
        places = [float(one) for one in range(len(axis.choices))]
        return places, np.equal.outer(np.array(places), np.array(at, dtype=float)).astype(float)
    shares = np.linspace(0.0, 1.0, PLACES)
    distance = np.subtract.outer(shares, scaled(axis, at)) / WIDTH
    return [unscaled(axis, float(one)) for one in shares], np.exp(-(distance**2) / 2)


def _contour(
    sample: Sample,
    by: str,
    x: Placed | None,
    y: Placed | None,
    drawn: Sequence[int],
    notes: Sequence[str],
) -> Contour:
    head = sample.head()
    grid_x: list[float] = []
    grid_y: list[float] = []
    means = np.empty((0, 0))
    lines: list[ContourLine] = []
    told = list(notes)
    if x is not None and y is not None and sample.values:
        grid_x, grid_y, means = surface(x, y, sample.values)
        if "choice" not in (x.axis.kind, y.axis.kind):
            lines = _lines(grid_x, grid_y, means, told)
        drawn = [at for at in drawn if x.at[at] is not None and y.at[at] is not None]
    best = sample.best
    return Contour(
        **head | {"notes": told},
        chosen_by=by,
        x=None if x is None else x.axis,
        y=None if y is None else y.axis,
        trials=[sample.trials[at] for at in drawn],
        values=[sample.values[at] for at in drawn],
        at_x=[] if x is None else [one for at in drawn if (one := x.at[at]) is not None],
        at_y=[] if y is None else [one for at in drawn if (one := y.at[at]) is not None],
        grid_x=grid_x,
        grid_y=grid_y,
        grid=[[None if math.isnan(one) else float(one) for one in row] for row in means],
        lines=lines,
        best=None if best is None else sample.trials[best],
    )


def _lines(
    grid_x: Sequence[float], grid_y: Sequence[float], means: Numbers, notes: list[str]
) -> list[ContourLine]:
    try:
        from contourpy import LineType, contour_generator
    except ImportError:
        notes.append("lines need matplotlib: pip install 'bequeath[plot]'")
        return []
    known = means[~np.isnan(means)]
    if not len(known) or np.ptp(known) == 0:
        return []
    masked = np.ma.masked_invalid(means)
    made = contour_generator(grid_x, grid_y, masked, line_type=LineType.Separate)
    lines = []
    for level in np.linspace(known.min(), known.max(), _LINES + 2)[1:-1]:
        for points in made.lines(float(level)):
            across, up = np.asarray(points).T
            lines.append(ContourLine(float(level), across.tolist(), up.tolist()))
    return lines
