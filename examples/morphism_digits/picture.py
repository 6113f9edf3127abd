"""Draws ``pareto.png``: ``bequeath experiment export ID --format json > rows.json``, then
``python picture.py rows.json``. It needs the extra ``plot``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import network
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tuners.pareto import fronts

HERE = Path(__file__).resolve().parent


def size_of(row: dict[str, Any]) -> int:
    """How many weights a trial's network has."""
    return network.size(network.fresh(row["parameters.blocks"], np.random.default_rng(0)))


def draw(rows: list[dict[str, Any]], out: Path) -> None:
    """Every network by size and accuracy, lines from parent to child, and the front of all."""
    rows = [row for row in rows if row["value"] is not None]
    points = [(row["value"], -float(size_of(row))) for row in rows]
    where = {row["save_path"]: point for row, point in zip(rows, points, strict=True)}
    figure = Figure(figsize=(6.4, 3.6), dpi=110)
    axes = figure.subplots()
    for row, (accuracy, size) in zip(rows, points, strict=True):
        parent = where.get(row["restore_path"])
        if parent is not None:
            axes.plot([-parent[1], -size], [parent[0], accuracy], color="0.8", lw=0.6, zorder=0)
    colours = [row["trial"] for row in rows]
    axes.scatter([-size for _, size in points], [a for a, _ in points], s=12, c=colours)
    front = sorted((-points[one][1], points[one][0]) for one in fronts(points)[0])
    axes.step(*zip(*front, strict=True), where="post", color="black", lw=1, label="Pareto front")
    axes.set(xscale="log", xlabel="weights", ylabel="validation accuracy")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
    axes.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    figure.savefig(out)


if __name__ == "__main__":
    out = HERE / "pareto.png"
    draw(json.loads(Path(sys.argv[1]).read_text()), out)
    sys.stdout.write(f"drawn: {out}\n")
