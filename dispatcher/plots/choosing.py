"""The parameters that a plot shows of many: the most important ones."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from dispatcher.plots.axes import placed, scaled
from dispatcher.plots.sampling import MOST_TRIALS, Sample

#: Parts of an axis of numbers, for parameters that are judged one by one.
_PARTS: Final = 10


class Chosen(NamedTuple):
    """Parameters that are shown, those that are not, and by what they were chosen: ``named``,
    ``importance``, ``correlation`` or, if there are no more, ``all``."""

    names: list[str]
    rest: list[str]
    by: str


def choose(sample: Sample, named: Sequence[str], many: int, seed: int = 0) -> Chosen:
    """Choose the parameters of a plot.

    Args:
        sample: the trials.
        named: those that somebody wants to see; empty: the most important ones.
        many: at most so many.
        seed: of their importance.

    Raises:
        UserError: trials do not differ in one that is named.
    """
    every = list(sample.columns)
    if named:
        sample.demand(named)
        wanted = [name for name in dict.fromkeys(named) if name in sample.columns][:many]
        return Chosen(wanted, [name for name in every if name not in wanted], "named")
    order, by = _ranked(sample, every, seed)
    return Chosen(order[:many], order[many:], by if len(every) > many else "all")


def _ranked(sample: Sample, every: list[str], seed: int) -> tuple[list[str], str]:
    """Order parameters. Of very many trials each parameter is judged alone: that takes a hundredth
    of the time and half of the memory, and there are enough trials for it."""
    few = sample.results <= MOST_TRIALS
    if few and importlib.util.find_spec("sklearn") is not None:
        from dispatcher.plots.importance import importance_of

        found = importance_of(sample, seed)
        if found.judged:
            return [*(one.name for one in found.judged), *found.rest], "importance"
    shares = {name: explained_alone(sample, name) for name in every}
    return sorted(every, key=lambda name: -shares[name]), "correlation"


def explained_alone(sample: Sample, name: str) -> float:
    """Return the share of the variance of results between groups of equal or near values of one
    parameter (the correlation ratio, squared), less what as many groups get by chance.

    Args:
        sample: the trials.
        name: of the parameter.
    """
    values = np.array(sample.values)
    axis, at = placed(name, sample.columns[name], logarithmic=name in sample.logarithmic)
    where = scaled(axis, at)
    if axis.kind != "choice":
        where = np.floor(where * _PARTS)
    groups = np.unique(np.nan_to_num(where, nan=-1.0), return_inverse=True)[1]
    spread = float(np.sum((values - values.mean()) ** 2)) if len(values) else 0.0
    if spread == 0.0:
        return 0.0
    counts = np.bincount(groups)
    means = np.bincount(groups, weights=values) / counts
    share = float(np.sum(counts * (means - values.mean()) ** 2)) / spread
    free = len(values) - len(counts)
    return 1.0 - (1.0 - share) * (len(values) - 1) / free if free > 0 else 0.0
