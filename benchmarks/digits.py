"""What inheritance is worth on digits, from the study that the example keeps its results of.

The study takes an hour, so it is not repeated here: ``examples/digits_evolution/study.py``
writes ``results.json``, and this reads it with the example's own arithmetic.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.rows import Row, row

EXAMPLE = Path(__file__).parent.parent / "examples" / "digits_evolution"
WHAT = "digits evolution, core-seconds to the threshold of the fair baseline"
TARGET = "≤ 1/3 of the baseline's, upper end of the interval ≤ 1/2"
MOST = 1 / 3
MOST_UPPER = 1 / 2
FEWEST_SEEDS = 5


def run(*, quick: bool = False) -> list[Row]:
    """The one row; ``quick`` changes nothing."""
    try:
        results = json.loads((EXAMPLE / "results.json").read_text())
    except FileNotFoundError:
        hint = "run examples/digits_evolution/study.py first, which writes results.json"
        return [row(WHAT, TARGET, "not measured", None, hint)]
    return [judged(results)]


def judged(results: dict[str, Any]) -> Row:
    """The study's ratio of mean core-seconds, its interval and how many searches arrived.

    A search that never reached the threshold counts with its whole budget. For the baseline
    that is generous; among ours it would flatter us, so then the target is not met.
    """
    arithmetic = _arithmetic()
    budget, epochs = results["budget_s"], results["best_epochs"]
    baseline, ours = results["sweep"][str(epochs)], results["inheriting"]
    threshold = statistics.median(arithmetic.best_within(path, budget)[0] for path in baseline)

    def arrivals(paths: list[Any]) -> list[float | None]:
        return [arithmetic.reached_at(path, threshold, budget) for path in paths]

    def times(paths: list[Any]) -> list[float]:
        return [budget if at is None else at for at in arrivals(paths)]

    ratio, low, high = arithmetic.ratio_interval(times(ours), times(baseline))
    arrived, arrived_baseline = (
        len(paths) - arrivals(paths).count(None) for paths in (ours, baseline)
    )
    enough = min(len(ours), len(baseline)) >= FEWEST_SEEDS
    met = ratio <= MOST and high <= MOST_UPPER and arrived == len(ours) and enough
    return row(
        WHAT,
        TARGET,
        f"{ratio:.2f} (95 % interval {low:.2f} to {high:.2f})",
        met,
        f"threshold {threshold:.3f}, random search's median best with {epochs} epochs a trial "
        f"and {budget:g} core-seconds; reached by {arrived} of {len(ours)} seeds with "
        f"inheritance, {arrived_baseline} of {len(baseline)} of the baseline",
    )


def _arithmetic() -> Any:
    """The example's ``report.py``, which is a script's neighbour and not in a package."""
    name = "digits_evolution_report"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, EXAMPLE / "report.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # its dataclasses look themselves up there
        spec.loader.exec_module(module)
    return sys.modules[name]
