"""Each parameter against the result, one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dispatcher.plots.axes import placed, scaled, unscaled
from dispatcher.plots.choosing import choose
from dispatcher.plots.sampling import DEFAULT, Sample, by_result, sample_of, spread
from dispatcher.plots.shapes import Slice, Slices, TrendPoint
from dispatcher.queries import ExperimentReader

#: Trials that are drawn: the best in any case.
MOST_POINTS: Final = 1_500
_BEST: Final = 200

#: Parts of an axis of numbers, each with a median.
_PARTS: Final = 12


def slices(
    reader: ExperimentReader,
    *,
    parameters: Sequence[str] = (),
    metric: str = DEFAULT,
    mode: str = "",
    many: int = 6,
    seed: int = 0,
) -> Slices:
    """Show the results over each of some parameters.

    Args:
        reader: the experiment.
        parameters: which; empty: the most important ones.
        metric: the name of a number in the final result.
        mode: ``maximize`` or ``minimize``; empty: as the experiment says.
        many: parameters at most.
        seed: of their importance.

    Raises:
        UserError: there is no such parameter or number.
    """
    sample = sample_of(reader, metric, mode)
    chosen = choose(sample, parameters, many, seed)
    drawn = sorted(spread(by_result(sample.values, sample.mode), MOST_POINTS, _BEST))
    best = sample.best
    return Slices(
        **sample.head(),
        chosen_by=chosen.by,
        trials=[sample.trials[at] for at in drawn],
        values=[sample.values[at] for at in drawn],
        best=None if best is None else sample.trials[best],
        slices=[_slice(sample, name, drawn) for name in chosen.names],
        rest=chosen.rest,
    )


def _slice(sample: Sample, name: str, drawn: Sequence[int]) -> Slice:
    axis, at = placed(name, sample.columns[name], logarithmic=name in sample.logarithmic)
    values = np.array(sample.values)
    if axis.kind == "choice":
        parts = np.array([math.nan if one is None else one for one in at])
        middle = {float(one): float(one) for one in range(len(axis.choices))}
    else:
        shares = scaled(axis, at)
        parts = np.minimum(np.floor(shares * _PARTS), _PARTS - 1)
        middle = {float(one): unscaled(axis, (one + 0.5) / _PARTS) for one in range(_PARTS)}
    trend = []
    for part, place in middle.items():
        there = values[parts == part]
        if len(there):
            trend.append(TrendPoint(place, float(np.median(there)), len(there)))
    return Slice(axis, [at[one] for one in drawn], trend)
