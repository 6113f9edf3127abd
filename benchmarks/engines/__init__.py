"""Trials in allocations of other people's schedulers, on real ones on this machine."""

from __future__ import annotations

import traceback
from importlib import import_module

from benchmarks.rows import Row, row

#: Modules of this folder: one about a head of many workers, the others each about one scheduler.
PARTS = ("scale", "slurm", "ray", "kubernetes")


def run(*, quick: bool = False) -> list[Row]:
    """All rows; blocks for three quarters of an hour. Needs root and ``make enable``."""
    return [line for part in PARTS for line in rows_of(part, quick=quick)]


def rows_of(part: str, *, quick: bool = False) -> list[Row]:
    """The rows of a part; one that says so where it fails, and the others go on.

    Args:
        part: one of :data:`PARTS`.
        quick: few repetitions.
    """
    try:
        rows: list[Row] = import_module(f"{__name__}.{part}").run(quick=quick)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other parts go on
        traceback.print_exc()
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return [row(f"engines: {part}", "", "failed", None, text)]
    return rows
