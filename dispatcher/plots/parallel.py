"""Trials as lines across the axes of the most important parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dispatcher.plots.axes import placed
from dispatcher.plots.choosing import choose
from dispatcher.plots.sampling import DEFAULT, by_result, sample_of, spread
from dispatcher.plots.shapes import Parallel
from dispatcher.queries import ExperimentReader

#: Lines that are drawn: the best in any case.
MOST_LINES: Final = 1_500
_BEST: Final = 200


def parallel(
    reader: ExperimentReader,
    *,
    parameters: Sequence[str] = (),
    metric: str = DEFAULT,
    mode: str = "",
    many: int = 12,
    seed: int = 0,
) -> Parallel:
    """Show trials over several parameters at once; the axes stand in the order of importance.

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
    drawn = spread(by_result(sample.values, sample.mode), MOST_LINES, _BEST)
    drawn.reverse()  # the best is drawn last, on top
    found = [
        placed(name, sample.columns[name], logarithmic=name in sample.logarithmic)
        for name in chosen.names
    ]
    best = sample.best
    return Parallel(
        **sample.head(),
        chosen_by=chosen.by,
        axes=[one.axis for one in found],
        at=[[one.at[at] for at in drawn] for one in found],
        trials=[sample.trials[at] for at in drawn],
        values=[sample.values[at] for at in drawn],
        best=None if best is None else sample.trials[best],
        rest=chosen.rest,
    )
