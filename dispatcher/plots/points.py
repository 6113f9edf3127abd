"""Trials as points of several objectives: which objectives are meant, and what each trial has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dispatcher import queries
from dispatcher.errors import UserError
from dispatcher.plots.sampling import metric_names, results
from dispatcher.plots.shapes import MOST_OBJECTIVES, Objective
from dispatcher.queries import ExperimentReader, OptimizeMode
from dispatcher.queries.objectives import bounded

_WORDS: Final = (OptimizeMode.MAXIMIZE.value, OptimizeMode.MINIMIZE.value)


@dataclass(frozen=True, slots=True)
class Points:
    """Trials with a number for each objective, in the order of the trials' numbers.

    ``kept`` says of each whether it keeps the bounds of the experiment.
    """

    metrics: list[str]
    objectives: list[Objective]
    trials: list[int]
    points: list[list[float]]
    kept: list[bool]
    notes: list[str] = field(default_factory=list)

    @property
    def heights(self) -> NDArray[np.float64]:
        """A row a trial, of which larger is better in each column."""
        rows = np.array(self.points, dtype=np.float64)
        return rows.reshape(len(self.points), len(self.objectives)) * self.signs

    @property
    def signs(self) -> NDArray[np.float64]:
        """The signs of the columns: multiplied by them, larger is better."""
        up = [one.mode is OptimizeMode.MAXIMIZE for one in self.objectives]
        return np.where(np.array(up, dtype=np.bool_), 1.0, -1.0)


def points_of(reader: ExperimentReader, wanted: Sequence[str]) -> Points:
    """Read the points of an experiment. In a moment of the store.

    Args:
        reader: the experiment.
        wanted: numbers in the final result, as ``accuracy`` or ``latency:minimize``; empty: those
            of the experiment. Without a word it is the objective's direction, else the
            experiment's.

    Raises:
        UserError: there is one only, or too many, or no result has such a number.
    """
    metrics = metric_names(reader)
    chosen = _chosen(reader, wanted)
    if chosen and not 2 <= len(chosen) <= MOST_OBJECTIVES:
        text = f"a front is of 2 to {MOST_OBJECTIVES} objectives, not of {len(chosen)}"
        raise UserError(text, hint=f"results hold: {', '.join(metrics[:12])}")
    names = [one.name for one in chosen]
    bounds = bounded(reader)
    trials: list[int] = []
    points: list[list[float]] = []
    kept: list[bool] = []
    if names:
        for number, _, held in results(reader, [*names, *(one.name for one in bounds)]):
            if all(name in held for name in names):
                trials.append(number)
                points.append([held[name] for name in names])
                kept.append(
                    all(one.name in held and one.beyond(held[one.name]) <= 0 for one in bounds)
                )
    unknown = [name for name in names if name not in metrics]
    if unknown and not trials:
        raise UserError(
            f"no result holds a number {unknown[0][:200]!r}",
            hint=f"there are: {', '.join(metrics[:12])}",
        )
    notes = [] if names else [
        "there is one objective: name several, as in accuracy and latency:minimize"
    ]  # fmt: skip
    broken = kept.count(False)
    if broken:
        texts = ", ".join(f"{one.name} {one.text.removeprefix(one.mode or '').strip()}"
                          for one in bounds)  # fmt: skip
        notes.append(f"{broken:,} of {len(kept):,} trials are not within the bounds: {texts}")
    return Points(metrics, chosen, trials, points, kept, notes)


def _chosen(reader: ExperimentReader, wanted: Sequence[str]) -> list[Objective]:
    known = queries.objectives(reader)
    if not wanted:
        return [Objective(name, mode) for name, mode in known.items()]
    found: dict[str, Objective] = {}
    for text in wanted:
        name, _, word = text.rpartition(":")
        if word not in _WORDS or not name:
            name, word = text, known.get(text, reader.mode).value
        found[name] = Objective(name, OptimizeMode(word))
    return list(found.values())
