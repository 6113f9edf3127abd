"""The steady state of a run, as every peer script reports it.

The scripts are started by the Python of the peer's own environment, so this module knows the
standard library only. ``benchmarks.peer_runs`` gives each script an empty folder as working
directory, HOME and TMPDIR, and sweeps up behind it: processes and files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypedDict

WARM_UP_SHARE = 0.1


class Steady(TypedDict):
    """What a script prints as its last line."""

    peer: str
    version: str
    trials: int
    seconds: float
    per_second: float
    detail: str


def steady(
    peer: str, package: str, ends: Sequence[float], *, workers: int, detail: str = ""
) -> Steady:
    """The rate between the end of the first trials and the end of the last.

    The first tenth of the trials, and at least one for each worker, is warm-up: what starts
    once (daemons, processes, the first import of a code path) is not charged to the peer.

    Args:
        peer: its name in the table.
        package: the distribution whose version is reported.
        ends: when each trial was over, in seconds on any one clock, in any order.
        workers: how many trials run at once.
        detail: how this figure came about, for the table.

    Raises:
        ValueError: fewer trials than a rate needs.
    """
    ordered = sorted(ends)
    skipped = max(workers, int(WARM_UP_SHARE * len(ordered)))
    if len(ordered) < skipped + 2:
        raise ValueError(f"{len(ordered)} trials are too few for a rate")
    counted = len(ordered) - skipped
    seconds = ordered[-1] - ordered[skipped - 1]
    return Steady(
        peer=peer,
        version=version(package),
        trials=counted,
        seconds=seconds,
        per_second=counted / seconds,
        detail=detail,
    )


def say(result: Mapping[str, Any]) -> None:
    """Print the result, one line of JSON: the script's last."""
    print(json.dumps(result), flush=True)
