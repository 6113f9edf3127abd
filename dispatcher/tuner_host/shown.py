"""What trials had reported before this process was there, for an assessor or an advisor.

The head reads it out of its journal when it is asked to, and lays down a file beside us.
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
    """What is in the file, in the order of the head's clock; waits for the file to appear. There
    is one in the end: a head that cannot write it gives up, and this process with it."""
    while not path.exists():
        time.sleep(_LOOK_S)
    with path.open("rb") as lines:
        yield from map(_line.decode, lines)


class MetricReplay:
    """Tells an advisor that is rebuilt what its trials have reported, where it belongs among the
    calls that are repeated: before the result of the trial, and in one order over all trials.

    Args:
        shown: what was reported, and how trials ended.
        tell: takes a metric.
    """

    def __init__(
        self, shown: Iterator[AssessorInput], tell: Callable[[AssessorInput], Any]
    ) -> None:
        self._shown = shown
        self._tell = tell
        self._over: set[int] = set()  # whose end was come by, and is not told yet

    def until_end_of(self, trial: int) -> None:
        """All that was reported before this trial ended. Its result, or its end, comes next."""
        while trial not in self._over:
            one = next(self._shown, None)
            if one is None:
                return
            if one.value is None:
                self._over.add(one.trial)
            else:
                self._tell(one)

    def ended(self, trial: int) -> None:
        """The end of this trial was told."""
        self._over.discard(trial)

    def rest(self) -> None:
        """What trials reported that run."""
        for one in self._shown:
            if one.value is not None:
                self._tell(one)
