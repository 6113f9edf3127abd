"""What the scripts that run other projects' tuners are asked, and what they answer.

The one argument is a JSON list of jobs, each with ``algorithm``, ``arguments``, ``problem``,
``seeds``, ``workers``, ``pieces`` and ``horizon`` (see ``virtual_time.lead``). The last line
printed is an object: the package's version, and for each job its scores, one a seed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TypedDict


class Job(TypedDict):
    """One comparison, as the peer is told of it."""

    algorithm: str
    arguments: dict[str, Any]
    problem: str
    seeds: list[int]
    workers: int
    pieces: int
    horizon: float


def say_scores(package: str, score: Callable[[Job, int], float]) -> None:
    """Do the jobs of the command line and print the answer."""
    jobs: list[Job] = json.loads(sys.argv[1])
    scores = [[score(job, seed) for seed in job["seeds"]] for job in jobs]
    print(json.dumps({"version": version(package), "scores": scores}), flush=True)
