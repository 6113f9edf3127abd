"""Draws ``paths.png``: ``bequeath experiment export ID --format json > rows.json``, then
``python picture.py rows.json``. It needs the extra ``plot``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import supernet
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
COSTS = {"relu": 576, "tanh": 576, "narrow": 288, "skip": 0}
PATHS_A_GENERATION = 16


def draw(rows: list[dict[str, Any]], out: Path) -> None:
    """Accuracy by generation, and accuracy against weights."""
    paths = [row for row in rows if row["value"] is not None and row["restore_path"]]
    accuracies = [row["value"] for row in paths]
    generations = [(row["trial"] - 1) // PATHS_A_GENERATION for row in paths]
    costs = [sum(COSTS[row[f"parameters.{name}"]] for name in supernet.BLOCKS) for row in paths]
    figure = Figure(figsize=(7.2, 3.2), dpi=110)
    left, right = figure.subplots(1, 2, sharey=True)
    left.scatter(generations, accuracies, s=10, c=generations, cmap="viridis")
    so_far = [max(a for a, g in zip(accuracies, generations, strict=True) if g <= at)
              for at in sorted(set(generations))]  # fmt: skip
    left.plot(sorted(set(generations)), so_far, color="black", lw=0.8, label="best so far")
    left.set(xlabel="generation", ylabel="accuracy with inherited weights")
    left.legend(loc="lower right", fontsize=8)
    right.scatter(costs, accuracies, s=10, c=generations, cmap="viridis")
    right.axvline(1500, color="black", lw=0.8, ls="--")
    right.set(xlabel="weights in the blocks (dashed: the bound)")
    figure.tight_layout()
    figure.savefig(out)


if __name__ == "__main__":
    out = HERE / "paths.png"
    draw(json.loads(Path(sys.argv[1]).read_text()), out)
    sys.stdout.write(f"drawn: {out}\n")
