"""Draws ``progress.png`` from ``results.json``: best accuracy against core-seconds spent.

Lines are medians over the seeds, bands reach from the worst seed to the best one. It needs the
extra ``plot``.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import report
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
POINTS = 400


def draw(results: dict[str, Any], out: Path) -> None:
    """Writes the picture of a study's results to ``out``."""
    budget, epochs = results["budget_s"], results["best_epochs"]
    baseline = results["sweep"][str(epochs)]
    spent = [budget * (1 + point) / POINTS for point in range(POINTS)]
    figure = Figure(figsize=(6.4, 3.6), dpi=110)
    axes = figure.subplots()
    for name, paths, colour in (
        ("evolution, inheriting", results["inheriting"], "tab:blue"),
        (f"evolution from scratch, {epochs} epochs", results["from_scratch"], "tab:green"),
        (f"random search, {epochs} epochs", baseline, "tab:orange"),
    ):
        seen = [[report.best_within(path, at)[0] for path in paths] for at in spent]
        axes.plot(spent, [statistics.median(at) for at in seen], color=colour, label=name)
        axes.fill_between(
            spent,
            [min(at) for at in seen],
            [max(at) for at in seen],
            color=colour,
            alpha=0.15,
            lw=0,
        )
    threshold = statistics.median(report.best_within(path, budget)[0] for path in baseline)
    axes.axhline(threshold, color="black", lw=0.8, ls="--", label=f"threshold {threshold:.3f}")
    axes.set(xlim=(0, budget), ylim=(0.2, 0.9), xlabel="core-seconds spent by the search")
    axes.set_ylabel("best validation accuracy")
    axes.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(out)


if __name__ == "__main__":
    draw(json.loads((HERE / "results.json").read_text()), HERE / "progress.png")
