"""``python -m benchmarks.beside TREE [--rounds N]``: this checkout beside an earlier one, in turns.

``TREE`` is a checkout with its own environment in ``TREE/.venv``. Both measure the same things one
after the other, each time by their own code and benchmarks, without peers. The medians go into
``results/beside.json``, and from there into ``RESULTS.md``.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks import collector
from benchmarks.__main__ import SECTIONS
from benchmarks.collector import Comparison
from benchmarks.machine import machine

HERE = Path(__file__).parents[1]

#: Whole sections, all of whose rows count that have a target.
ROWS = ("startup", "gates", "memory", "weights")

#: Empty trials a second by experiments that both versions understand: options, and the marks
#: between which they are counted.
EXPERIMENTS = {
    "empty trials a second, fresh": {"trials": 60, "marks": [1, 60]},
    "empty trials a second, forked, torch": {
        "trials": 400,
        "reuse": "forked",
        "preload": ["torch", "empty"],
        "marks": [20, 400],
    },
    "empty trials a second, forked, numpy": {
        "trials": 400,
        "reuse": "forked",
        "preload": ["numpy", "empty"],
        "marks": [20, 400],
    },
    "empty trials a second, in-process": {
        "trials": 3000,
        "reuse": "inProcess",
        "marks": [100, 3000],
    },
}

SECTION = "import json; from benchmarks import {0}; print('\\n' + json.dumps({0}.run()))"
#: The first number of a text, but for those that are part of a name (`p50`).
FIGURE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")

#: What one tree measured: quantity → figures, and whether more of it is better.
Figures = dict[str, list[float]]


def main() -> int:
    """Measure both in turns; 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beside", description=__doc__)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    trees = {"before": options.tree.resolve(), "now": HERE}
    figures: dict[str, Figures] = {name: defaultdict(list) for name in trees}
    more: dict[str, bool] = {}
    for number in range(options.rounds):
        for name, tree in trees.items():
            print(f"round {number + 1}, {name}: {tree}", flush=True)
            for what, figure, more_is_better in measured(tree):
                figures[name][what].append(figure)
                more[what] = more_is_better
    rows = [
        Comparison(
            what=what,
            before=statistics.median(figures["before"][what]),
            now=statistics.median(figures["now"][what]),
            more_is_better=better,
        )
        for what, better in more.items()
        if figures["before"][what] and figures["now"][what]
    ]
    collector.keep_comparison(commit_of(trees["before"]), machine(), options.rounds, rows)
    collector.write(SECTIONS)
    print("\n".join(collector.comparison_table(rows)))
    return 0


def measured(tree: Path) -> Iterator[tuple[str, float, bool]]:
    """Quantity, figure, and whether more is better, by the code of a checkout."""
    for section in ROWS:
        lines = run(tree, "-c", SECTION.format(section)).splitlines()
        for row in json.loads(lines[-1]):
            figure = figure_of(row["measured"])
            if row["target"] and row["ok"] is not None and figure is not None:
                yield f"{section}: {row['what']}", figure, "≥" in row["target"]
    for what, options in EXPERIMENTS.items():
        asked = json.dumps({"concurrency": 2, **options})
        result = json.loads(run(tree, "-m", "benchmarks.run_experiment", asked))
        first, last = (result["samples"][str(mark)] for mark in options["marks"])
        yield what, (last["over"] - first["over"]) / (last["wall"] - first["wall"]), True


def figure_of(measured: str) -> float | None:
    """The figure that a row's text begins with; None: it has none."""
    found = FIGURE.search(measured)
    return None if found is None else float(found.group())


def run(tree: Path, *arguments: str) -> str:
    """Run the Python of a checkout there; what it printed."""
    python = tree / ".venv" / "bin" / "python"
    done = subprocess.run(
        [python, *arguments], cwd=tree, stdout=subprocess.PIPE, text=True, check=True, timeout=900
    )
    return done.stdout


def commit_of(tree: Path) -> str:
    """The commit that is checked out there."""
    asked = ["git", "-C", tree, "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
