"""Best validation against what was spent: a panel for each tuner, random search in all of them.

Thick lines are means over the seeds, bands reach from the worst seed to the best. It needs the
extra ``plot``.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.tuner_digits.searching import Found

POINTS = 200


def draw(
    ours: Mapping[str, Sequence[Found]],
    baseline: Sequence[Found],
    target: Path,
    *,
    budget: float,
    spent_label: str,
    baseline_name: str,
    value_label: str = "best validation accuracy",
) -> None:
    """Writes the picture to ``target``, as PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.8, 3.2 * len(ours)), 3.2), dpi=100)
    panels = figure.subplots(1, len(ours), sharex=True, sharey=True, squeeze=False)[0]
    for panel, (name, found) in zip(panels, ours.items(), strict=True):
        _line(panel, baseline, budget, baseline_name, "tab:orange")
        _line(panel, found, budget, name, "tab:blue")
        panel.set_xlabel(spent_label, fontsize=9)
        panel.legend(loc="lower right", fontsize=8)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(value_label, fontsize=9)
    last = [at.valid for each in (baseline, *ours.values()) for one in each for at in one.path[-1:]]
    panels[0].set_ylim(min(last) - 1.5 * (max(last) - min(last)) - 0.01, max(last) + 0.005)
    panels[0].set_xlim(0, budget)
    figure.tight_layout()
    target.parent.mkdir(exist_ok=True)
    figure.savefig(target, metadata={"Software": None})


def _line(panel: Any, found: Sequence[Found], budget: float, name: str, colour: str) -> None:
    spent, seen = means(found, budget)
    panel.plot(spent, [statistics.fmean(at) for at in seen], color=colour, label=name)
    low, high = [min(at) for at in seen], [max(at) for at in seen]
    panel.fill_between(spent, low, high, color=colour, alpha=0.15, lw=0)


def means(found: Sequence[Found], budget: float) -> tuple[list[float], list[list[float]]]:
    """Points of the budget from where all seeds have something, and what each had there."""
    spent, seen = [], []
    for point in range(1, POINTS + 1):
        at = budget * point / POINTS
        values = [better.valid for one in found if (better := one.at(at)) is not None]
        if len(values) == len(found):
            spent.append(at)
            seen.append(values)
    return spent, seen
