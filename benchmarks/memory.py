"""The head's memory after ten thousand trials of a hundred metrics each."""

from __future__ import annotations

from benchmarks.dispatch import experiment
from benchmarks.rows import Row, row

MB = 1e6


def run(*, quick: bool = False) -> list[Row]:
    """All rows; ``quick`` runs a tenth of the trials."""
    count = 1_000 if quick else 10_000
    options = {"reuse": "inProcess", "function": "empty:train_with_metrics", "idle_s": 5.0}
    some = experiment(trials=count // 10, marks=[1], **options)
    many = experiment(trials=count, marks=[1], **options)
    rss, small = many["rss_bytes"], some["rss_bytes"]
    each = (rss - small) / (count - count // 10) / 1024
    grown = many["idle_grown_bytes"]
    return [
        row(
            f"head's memory with {count:,} finished trials of 100 metrics",
            "≤ 100 MB",
            f"{rss / MB:.0f} MB",
            rss <= 100 * MB,
        ),
        row("… for each finished trial", "≤ 2 KiB", f"{each:.2f} KiB", each <= 2.0),
        row("… when idle", "flat", f"{grown / 1024:+.0f} KiB in 5 s", grown <= 256 * 1024),
    ]
