"""Draws ``population.png``: ``bequeath experiment export ID --format json > rows.json``, then
``python picture.py rows.json``. It needs the extra ``plot``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import replay
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tuners.schedules import schedule

HERE = Path(__file__).resolve().parent
MEMBERS = 8


def draw(rows: list[dict[str, Any]], out: Path) -> None:
    """Accuracy of all members by generation, and the schedule behind the best one."""
    rows = [row for row in rows if row["value"] is not None]
    figure = Figure(figsize=(7.2, 3.2), dpi=110)
    left, right = figure.subplots(1, 2)
    by_path = {row["save_path"]: row for row in rows}
    for row in rows:
        here = row["trial"] // MEMBERS
        parent = by_path.get(row["restore_path"])
        if parent is not None:
            own = parent["trial"] % MEMBERS == row["trial"] % MEMBERS
            left.plot([parent["trial"] // MEMBERS, here], [parent["value"], row["value"]],
                      color="tab:blue" if own else "tab:orange", lw=0.7)  # fmt: skip
        left.plot(here, row["value"], ".", color="black", ms=3)
    left.set(xlabel="generation (orange: copied from another)", ylabel="validation accuracy")
    steps = schedule(rows, replay.best(rows))
    for name in ("rate", "momentum", "decay"):
        right.semilogy([step[name] for step in steps], marker=".", label=name)
    right.set(xlabel="generation", title="schedule of the best")
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.tight_layout()
    figure.savefig(out)


if __name__ == "__main__":
    out = HERE / "population.png"
    draw(json.loads(Path(sys.argv[1]).read_text()), out)
    sys.stdout.write(f"drawn: {out}\n")
