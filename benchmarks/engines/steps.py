"""The measurements of a part, one after another: one that fails is a row, and the others go on."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from benchmarks.rows import Row, row

WARM_TARGET = "≤ 1.1 ×"
MANY_TARGET = "≥ 20 ×"
REQUESTS_TARGET = "≤ 1 a second"

#: The variable with a part of the names of the steps that are wanted; all of them without it.
ONLY = "BEQUEATH_BENCH_STEPS"


class Step(NamedTuple):
    """One measurement.

    Attributes:
        what: for people, where it fails.
        target: of its first row.
        measure: returns its rows; blocks.
    """

    what: str
    target: str
    measure: Callable[[], list[Row]]


def taken(steps: Iterable[Step]) -> Iterator[Row]:
    """The rows of each step as soon as they are there; how long each took goes to stderr. Steps
    whose names have nothing of :data:`ONLY` are left out."""
    wanted = os.environ.get(ONLY, "")
    for step in steps:
        if wanted not in step.what:
            continue
        began = time.monotonic()
        try:
            rows = step.measure()
        except Exception as error:  # noqa: BLE001 - whatever it is, the other steps go on
            traceback.print_exc()
            text = " ".join(f"{type(error).__name__}: {error}".split())
            rows = [row(step.what, step.target, "failed", None, text)]
        print(f"{step.what}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        yield from rows
