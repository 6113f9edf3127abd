"""A thousand workers and a hundred thousand trials of ten minutes, in a time that is skipped.

See :mod:`benchmarks.engines.scaled_head` for what is real. Agents and head share two cores here,
and so do the threads of the head: what it takes is counted by the kernel, and how long it takes is
what a clock says.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.engines.scaled_head import COMMAND
from benchmarks.machine import commit_times_s
from benchmarks.rows import Row, quantile, row

WORKERS, TRIALS, TRIAL_S, WINDOW_S = 1_000, 100_000, 600.0, 600.0
LIMIT_S = 3_600.0


def run(*, quick: bool = False) -> list[Row]:
    """The rows; blocks for a quarter of an hour and more."""
    workers, trials, window_s = WORKERS, TRIALS, WINDOW_S
    if quick:
        workers, trials, window_s = WORKERS // 10, TRIALS // 100, WINDOW_S / 5
    with tempfile.TemporaryDirectory(prefix="scale-") as base:
        commits = commit_times_s(Path(base))
        options = {"workers": workers, "trials": trials, "trial_s": TRIAL_S, "window_s": window_s}
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, json.dumps({**options, "base": base})],
            stdout=subprocess.PIPE,
            timeout=LIMIT_S,
            check=True,
        )
    return rows_of(json.loads(done.stdout), workers, trials, quantile(commits, 0.99))


def rows_of(result: dict[str, Any], workers: int, trials: int, commit_s: float) -> list[Row]:
    """The rows of a run.

    Args:
        result: what the head has printed.
        workers: how many there were.
        trials: how many were over at least when the window began.
        commit_s: how long a commit that is safe on the disk takes here, at the 99th percentile.
    """
    what = f"{workers:,} workers, {trials:,} trials of {TRIAL_S / 60:.0f} min"
    share, rss = result["cpu_share"], result["rss_bytes"]
    late = result["latencies_s"]
    p50, p99 = (quantile(late, part) for part in (0.5, 0.99))
    return [
        row(
            f"{what}: CPU of the head",
            "≤ 20 % of a core",
            f"{100 * share:.1f} %",
            share <= 0.2,
            f"{result['trials']:,} trials in all; over {result['simulated_s']:.0f} s of a "
            "simulated clock at the end: heartbeats as the head orders them, a metric a minute "
            "from each trial and the scheduler's list "
            "each 5 s; "
            f"{result['trials_in_window']} trials ended then; it took {result['real_s']:.0f} s",
        ),
        row(
            "… its memory then",
            "≤ 300 MB",
            f"{rss / 1e6:.0f} MB",
            rss <= 300e6,
            f"the tuner host beside it has {result['tuner_rss_bytes'] / 1e6:.0f} MB",
        ),
        row(
            "… from a result's commit to the start that follows, p99",
            "≤ 50 ms",
            f"{1000 * p99:.1f} ms, {p99 / commit_s:.1f} × a durable commit's p99 "
            f"({1000 * commit_s:.1f} ms)",
            p99 <= 0.05,
            f"p50 {1000 * p50:.1f} ms, of {len(late)} ends; asked for, proposed by the tuner host, "
            "committed and sent",
        ),
    ]
