"""Trials on other machines: bringing code, many workers, a bad line."""

from __future__ import annotations

from benchmarks import remote_loss, remote_upload, remote_workers
from benchmarks.rows import Row


def run(*, quick: bool = False) -> list[Row]:
    """All rows; blocks for some minutes. Needs root and ``make enable`` but for the workers."""
    parts = (remote_workers, remote_upload, remote_loss)
    return [line for part in parts for line in part.run(quick=quick)]
