"""Metrics that trials reported before this process began, for an assessor or an advisor.

The head reads them from its journal on request, and writes them to a file in its folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from dispatcher.ports import AssessorInput

#: Before the first metric that a trial can report, by attempt and number.
BEFORE_ALL = (-1, -1)

#: Seconds between two looks for the file, which takes the head some microseconds a metric.
_LOOK_S = 0.02

_line = msgspec.json.Decoder(AssessorInput)


def shown_in(path: Path) -> Iterator[AssessorInput]:
    """Read the file, in the order of the head's clock; waits for the file to appear.

    It appears in the end: a head that cannot write it gives up, and this process ends with it.
    """
    while not path.exists():
        time.sleep(_LOOK_S)
    with path.open("rb") as lines:
        yield from map(_line.decode, lines)


class MetricReplay:
    """Repeats the metrics of before to an advisor that is rebuilt, among its repeated calls.

    A trial's metrics come before its result, and in one order over all trials.

    Args:
        shown: metrics and ends of trials, from :func:`shown_in`.
        tell: takes a metric.
    """

    def __init__(
        self, shown: Iterator[AssessorInput], tell: Callable[[AssessorInput], Any]
    ) -> None:
        self._shown = shown
        self._tell = tell
        self._over: set[int] = set()  # trials whose end was read, and not delivered yet

    def until_end_of(self, trial: int) -> None:
        """Repeat all metrics up to the end of this trial. Its result, or its end, comes next."""
        while trial not in self._over:
            one = next(self._shown, None)
            if one is None:
                return
            if one.value is None:
                self._over.add(one.trial)
            else:
                self._tell(one)

    def ended(self, trial: int) -> None:
        """Note that the end of this trial was delivered."""
        self._over.discard(trial)

    def rest(self) -> None:
        """Repeat the metrics of trials that still run."""
        for one in self._shown:
            if one.value is not None:
                self._tell(one)
