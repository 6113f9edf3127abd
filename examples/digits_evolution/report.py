"""From the searches of a study to its tables. Pure: no torch, no clock."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Two-sided 95 % points of Student's t by degrees of freedom.
T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)  # fmt: skip

Path = Sequence[Sequence[float]]
"""After each trial: core-seconds so far, best validation accuracy so far, its test accuracy."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search with one seed."""

    seed: int
    path: Path


def brief(search: Search) -> str:
    """One line about a search."""
    spent, best, test = search.path[-1]
    return f"{len(search.path)} trials, {spent:.1f} core-s, best {best:.3f} (test {test:.3f})"


def best_within(path: Path, budget_s: float) -> tuple[float, float]:
    """Best validation accuracy, and its test accuracy, of trials that ended within the budget."""
    found = (0.0, 0.0)
    for spent, best, test in path:
        if spent <= budget_s:
            found = (best, test)
    return found


def reached_at(path: Path, threshold: float, budget_s: float) -> float | None:
    """Core-seconds when the threshold was first reached; None if not within the budget."""
    for spent, best, _ in path:
        if spent <= budget_s and best >= threshold:
            return spent
    return None


def best_epochs(sweep: dict[int, list[Search]], budget_s: float) -> int:
    """The number of epochs whose searches have the highest median best."""
    return max(sweep, key=lambda epochs: _median([one.path for one in sweep[epochs]], budget_s))


def mean_interval(numbers: Sequence[float]) -> tuple[float, float]:
    """Mean and the half-width of its 95 % interval (Student's t)."""
    mean = statistics.fmean(numbers)
    if len(numbers) < 2:
        return mean, math.inf
    return mean, _t(len(numbers) - 1) * statistics.stdev(numbers) / math.sqrt(len(numbers))


def ratio_interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Ratio of means with its 95 % interval (Welch's t on the logarithms of the two means).

    Means, since core-seconds are paid in sum; and times cut off at a budget are not lognormal.
    """
    a, b = statistics.fmean(ours), statistics.fmean(theirs)
    va = statistics.variance(ours) / len(ours) / a**2
    vb = statistics.variance(theirs) / len(theirs) / b**2
    if va + vb == 0:
        return a / b, a / b, a / b
    freedom = (va + vb) ** 2 / (va**2 / (len(ours) - 1) + vb**2 / (len(theirs) - 1))
    factor = math.exp(_t(int(freedom)) * math.sqrt(va + vb))
    return a / b, a / b / factor, a / b * factor


def markdown(results: dict[str, Any]) -> str:
    """The README's two tables and its sentence."""
    budget = results["budget_s"]
    epochs = results["best_epochs"]
    swept = results["sweep_seeds"]
    baseline = results["sweep"][str(epochs)]
    threshold = _median(baseline, budget)
    lines = [
        f"Random search, {budget:g} core-seconds a search, the sweep's {swept} seeds:",
        "",
        "| epochs per trial | trials | best validation accuracy: median | mean |",
        "|---|---|---|---|",
    ]
    for each, searches in results["sweep"].items():
        paths = searches[:swept]
        finals = [best_within(path, budget)[0] for path in paths]
        chosen = " (baseline)" if int(each) == epochs else ""
        lines.append(
            f"| {each}{chosen} | {_trials(paths)} | {_median(paths, budget):.3f} "
            f"| {_plus_minus(finals)} |"
        )
    lines += [
        "",
        f"All within {budget:g} core-seconds; the threshold is the median best of the baseline's "
        f"{len(baseline)} seeds, {threshold:.3f}:",
        "",
        "| search | trials | validation accuracy | test accuracy | reached the threshold "
        "| core-seconds to it | ratio to baseline |",
        "|---|---|---|---|---|---|---|",
    ]
    theirs = _times(baseline, threshold, budget)
    for name, paths in (
        (f"random, {epochs} epochs (baseline)", baseline),
        (f"evolution from scratch, {epochs} epochs", results["from_scratch"]),
        ("evolution, inheriting", results["inheriting"]),
    ):
        if len(paths) < 2:  # a study cut short
            continue
        ends = [best_within(path, budget) for path in paths]
        times = _times(paths, threshold, budget)
        arrived = sum(reached_at(path, threshold, budget) is not None for path in paths)
        ratio, low, high = ratio_interval(times, theirs)
        against = "1" if paths is baseline else f"{ratio:.2f} ({low:.2f} to {high:.2f})"
        lines.append(
            f"| {name} | {_trials(paths)} | {_plus_minus([end[0] for end in ends])} "
            f"| {_plus_minus([end[1] for end in ends])} | {arrived} of {len(paths)} "
            f"| {_plus_minus(times, 1)} | {against} |"
        )
    return "\n".join(lines) + "\n"


def _times(paths: Sequence[Path], threshold: float, budget_s: float) -> list[float]:
    """A search that never arrived counts with the whole budget, in its own favour."""
    arrivals = (reached_at(path, threshold, budget_s) for path in paths)
    return [budget_s if arrival is None else arrival for arrival in arrivals]


def _median(paths: Sequence[Path], budget_s: float) -> float:
    return statistics.median(best_within(path, budget_s)[0] for path in paths)


def _trials(paths: Sequence[Path]) -> str:
    return f"{statistics.fmean(len(path) for path in paths):.0f}"


def _plus_minus(numbers: Sequence[float], digits: int = 3) -> str:
    mean, half = mean_interval(numbers)
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def _t(freedom: int) -> float:
    return T_95[max(1, freedom) - 1] if freedom <= len(T_95) else 1.96 + 2.5 / freedom
