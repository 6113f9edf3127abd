"""The importance of parameters, by permutation.

A random forest (Breiman 2001, "Random Forests", section 10) learns results from parameters, on
three quarters of the trials. Then the values of one parameter are shuffled among the last quarter:
the share of variance that the forest explains less is the parameter's importance. Each quarter is
left out once.

What this says, and what it does not:

- It is about the trials that there are. A tuner that has settled on a learning rate early has few
  trials elsewhere, and the parameter seems unimportant.
- Of parameters that rise and fall together each can stand for the other: both seem unimportant.
  Such pairs are named.
- A trial that inherits weights owes much of its result to its parent. The parent's result is
  an input of the forest too, and shown apart; what was gained by earlier generations counts there.
- With a model that explains little, the order is chance. ``explained`` is measured on trials that
  the forest has not seen.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dispatcher.errors import UserError
from dispatcher.plots.axes import placed, scaled
from dispatcher.plots.sampling import DEFAULT, Sample, sample_of
from dispatcher.plots.shapes import Importance, JudgedParameter
from dispatcher.queries import ExperimentReader

Numbers = NDArray[np.float64]

#: Trials that the forest learns from at most, and parameters that are shuffled at most.
MOST_FITTED: Final = 2_000
MOST_JUDGED: Final = 40

#: Fewer trials say nothing; fewer than the second number, or a model that explains less, little.
LEAST: Final = 10
_LEAST_RELIABLE: Final = 40
_LEAST_EXPLAINED: Final = 0.3

_FOLDS: Final = 4
_REPEATS: Final = 3
_TREES: Final = 60
_SCREENING_TREES: Final = 40

#: Rank correlation from which two parameters are named as alike.
_ALIKE: Final = 0.9
_MOST_ALIKE: Final = 20

_PARENT: Final = "result of the parent"

#: A place below all others: the trial has no such parameter.
_ABSENT: Final = -0.5


class _Judged(NamedTuple):
    """A forest's judgement: how much it explains, and the drop and its error for each column."""

    explained: float
    drops: Numbers
    errors: Numbers


def importance(
    reader: ExperimentReader, *, metric: str = DEFAULT, mode: str = "", seed: int = 0
) -> Importance:
    """Judge all parameters. The same trials and seed give the same answer.

    Args:
        reader: the experiment.
        metric: the name of a number in the final result.
        mode: ``maximize`` or ``minimize``; empty: as the experiment says. It changes nothing here.
        seed: of forests, quarters and shuffles.

    Raises:
        UserError: scikit-learn is missing, or no result has such a number.
    """
    demand_sklearn()
    return importance_of(sample_of(reader, metric, mode), seed)


def demand_sklearn() -> None:
    """Raise ``UserError`` where the library is missing."""
    if importlib.util.find_spec("sklearn") is None:
        raise UserError(
            "the importance of parameters needs scikit-learn, which is not installed",
            hint="pip install 'bequeath[plot]'",
        )


def importance_of(sample: Sample, seed: int = 0) -> Importance:
    """Judge the parameters of these trials.

    Args:
        sample: the trials.
        seed: of forests, quarters and shuffles.
    """
    names = list(sample.columns)
    values = _within_reach(np.array(sample.values))
    rows = _some_rows(len(values), seed)
    values = values[rows]
    notes: list[str] = list(sample.notes)
    if len(rows) < LEAST or not names or np.ptp(values) == 0:
        notes.append(_why_nothing(len(rows), names))
        return _answer(sample, seed, len(rows), None, [], None, [], names, notes)
    columns = _columns(sample, names)[rows]
    parents = _parents(sample, rows)
    kept = _screened(columns, values, seed)
    if len(kept) < len(names):
        notes.append(
            f"judged are the {len(kept)} of {len(names)} parameters that a first forest used most"
        )
    table = columns[:, kept] if parents is None else np.column_stack([columns[:, kept], parents])
    found = _judge(table, values, seed)
    judged = [
        JudgedParameter(names[column], float(found.drops[at]), float(found.errors[at]))
        for at, column in enumerate(kept)
    ]
    judged.sort(key=lambda one: -one.importance)
    inherited = None
    if parents is not None:
        inherited = JudgedParameter(_PARENT, float(found.drops[-1]), float(found.errors[-1]))
    pairs = _alike(columns[:, kept], [names[column] for column in kept])
    left = set(kept)
    rest = [name for at, name in enumerate(names) if at not in left]
    notes += _doubts(len(rows), found.explained, pairs)
    return _answer(sample, seed, len(rows), found.explained, judged, inherited, pairs, rest, notes)


def _answer(
    sample: Sample,
    seed: int,
    fitted: int,
    explained: float | None,
    judged: list[JudgedParameter],
    inherited: JudgedParameter | None,
    alike: list[tuple[str, str]],
    rest: list[str],
    notes: list[str],
) -> Importance:
    reliable = explained is not None and explained >= _LEAST_EXPLAINED and fitted >= _LEAST_RELIABLE
    head = sample.head() | {"notes": notes}
    return Importance(
        **head, method="permutation", seed=seed, fitted=fitted, explained=explained,
        reliable=reliable, judged=judged, inherited=inherited, alike=alike, rest=rest,
    )  # fmt: skip


def _why_nothing(rows: int, names: Sequence[str]) -> str:
    if rows < LEAST:
        return f"{rows} results are too few: {LEAST} are needed, and some hundred say more"
    return "all results are the same" if names else "trials differ in no parameter"


def _doubts(rows: int, explained: float, alike: Sequence[tuple[str, str]]) -> list[str]:
    doubts = []
    if explained < _LEAST_EXPLAINED:
        doubts.append(
            f"parameters explain {max(0.0, explained):.0%} of the variance of results: "
            "the order may be chance"
        )
    if rows < _LEAST_RELIABLE:
        doubts.append(f"{rows} results are few: another seed may give another order")
    if alike:
        doubts.append(
            "parameters that rise and fall together share their importance; they are named"
        )
    return doubts


def _within_reach(values: Numbers) -> Numbers:
    """Move results far outside to the edge: one that has diverged would be all of the variance."""
    if len(values) < 4:
        return values
    low, high = np.quantile(values, [0.25, 0.75])
    reach = 3.0 * (high - low)
    return np.clip(values, low - reach, high + reach) if reach > 0 else values


def _some_rows(many: int, seed: int) -> NDArray[np.intp]:
    if many <= MOST_FITTED:
        return np.arange(many)
    chosen = np.random.default_rng(seed).choice(many, MOST_FITTED, replace=False)
    return np.sort(chosen)


def _columns(sample: Sample, names: Sequence[str]) -> Numbers:
    found = []
    for name in names:
        axis, at = placed(name, sample.columns[name], logarithmic=name in sample.logarithmic)
        found.append(np.nan_to_num(scaled(axis, at), nan=_ABSENT))
    return np.column_stack(found)


def _parents(sample: Sample, rows: NDArray[np.intp]) -> Numbers | None:
    """Return the parents' results of these trials; None where almost none has one."""
    known = [sample.parents[at] for at in rows]
    numbers = [one for one in known if one is not None]
    if len(numbers) < LEAST:
        return None
    low, high = min(numbers), max(numbers)
    size = (high - low) or 1.0
    return np.array([_ABSENT if one is None else (one - low) / size for one in known])


def _forest(trees: int, features: float, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(
        n_estimators=trees, min_samples_leaf=2, max_features=features, random_state=seed, n_jobs=1
    )


def _screened(columns: Numbers, values: Numbers, seed: int) -> list[int]:
    """Return the columns that are judged: all, or those that a first forest uses most."""
    many = columns.shape[1]
    if many <= MOST_JUDGED:
        return list(range(many))
    used = _forest(_SCREENING_TREES, 0.2, seed).fit(columns, values).feature_importances_
    first = sorted(range(many), key=lambda at: (-used[at], at))[:MOST_JUDGED]
    return sorted(first)


def _judge(table: Numbers, values: Numbers, seed: int) -> _Judged:
    """Shuffle each column of each quarter, under a forest that has not seen the quarter."""
    draw = np.random.default_rng(seed)
    parts = np.array_split(draw.permutation(len(values)), _FOLDS)
    drops: list[Numbers] = []
    missed = 0.0
    for part in parts:
        others = np.setdiff1d(np.arange(len(values)), part)
        forest = _forest(_TREES, min(1.0, max(1 / 3, 8 / table.shape[1])), seed).fit(
            table[others], values[others]
        )
        unseen, truth = table[part], values[part]
        lost = float(np.sum((forest.predict(unseen) - truth) ** 2))
        missed += lost
        for _ in range(_REPEATS):
            drops.append(_shuffled(forest, unseen, truth, draw) - lost)
    variance = float(np.sum((values - values.mean()) ** 2))
    shares = np.array(drops) / (variance / _FOLDS)
    errors = shares.std(axis=0, ddof=1) / math.sqrt(len(drops))
    return _Judged(1.0 - missed / variance, shares.mean(axis=0), errors)


def _shuffled(forest: Any, unseen: Numbers, truth: Numbers, draw: np.random.Generator) -> Numbers:
    """Return the squared error with each of the columns shuffled."""
    many = unseen.shape[1]
    tables = np.repeat(unseen[np.newaxis], many, axis=0)
    for column in range(many):
        tables[column, :, column] = draw.permutation(unseen[:, column])
    # All at once: a forest takes as long for a few rows as for some thousand.
    guessed = forest.predict(tables.reshape(-1, many)).reshape(many, -1)
    errors: Numbers = np.sum((guessed - truth) ** 2, axis=1)
    return errors


def _alike(columns: Numbers, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of columns whose ranks rise or fall together."""
    ranks = np.argsort(np.argsort(columns, axis=0, kind="stable"), axis=0).astype(float)
    for at in range(columns.shape[1]):  # equal values share a rank
        _, inverse, counts = np.unique(columns[:, at], return_inverse=True, return_counts=True)
        ranks[:, at] = (np.bincount(inverse, weights=ranks[:, at]) / counts)[inverse]
    ranks -= ranks.mean(axis=0)
    sizes = np.sqrt((ranks**2).sum(axis=0))
    sizes[sizes == 0] = 1.0
    found = (ranks.T @ ranks) / np.outer(sizes, sizes)
    return [
        (names[a], names[b])
        for a in range(len(names))
        for b in range(a + 1, len(names))
        if abs(found[a, b]) >= _ALIKE
    ][:_MOST_ALIKE]
