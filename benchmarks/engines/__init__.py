"""Trials in allocations of other people's schedulers, on real ones on this machine."""

from __future__ import annotations

from benchmarks.engines.spaces import rows_in_spaces
from benchmarks.environments import EnvironmentFailed, python_of
from benchmarks.rows import Row, row

#: Modules of this folder, one about a head of many workers, the others each about one scheduler;
#: and the seconds after which one is ended. Its rows until then are kept.
PARTS = {"scale": 2_700.0, "slurm": 600.0, "ray": 1_500.0, "kubernetes": 720.0, "services": 900.0}

#: Parts in a network of their own, which is the loopback alone.
OFF_THE_NETWORK = frozenset({"ray"})


def run(*, quick: bool = False) -> list[Row]:
    """All rows; blocks for an hour and a quarter. Needs root and ``make enable``."""
    return [line for part in PARTS for line in rows_of(part, quick=quick)]


def rows_of(part: str, *, quick: bool = False) -> list[Row]:
    """The rows of a part, which runs in process numbers of its own and leaves nothing behind.

    Args:
        part: one of :data:`PARTS`.
        quick: few repetitions.
    """
    if part == "ray":  # its peer is installed here, since there is no network where it runs
        try:
            python_of("ray")
        except EnvironmentFailed as error:
            return [row("trials on Ray", "", "not measured", None, str(error))]
    words = ["--quick"] if quick else []
    network = part not in OFF_THE_NETWORK
    return rows_in_spaces(part, words, limit_s=PARTS[part], network=network)
