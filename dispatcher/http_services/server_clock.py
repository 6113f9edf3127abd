"""The time as an API server has it: its clock and ours may differ by hours."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache


class ServerClock:
    """Seconds since the epoch by the server's clock, as its answers give it. Threads: any.

    Args:
        clock: monotonic seconds.
        wall: seconds since the epoch of this machine, for as long as no answer came.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._ahead_s = wall() - clock()

    def note(self, date: str) -> None:
        """Take in the date of an answer that came just now; anything else is passed over."""
        try:
            seconds = _seconds(parsedate_to_datetime(date))
        except (ValueError, OverflowError):
            return
        if seconds is not None:
            self._ahead_s = seconds - self._clock()

    def now(self) -> float:
        """The time at the server (seconds since the epoch)."""
        return self._ahead_s + self._clock()

    def since(self, timestamp: object) -> float | None:
        """The age of a time stamp of an object (seconds, never negative); None: it is none."""
        moment = moment_of(timestamp)
        return None if moment is None else max(0.0, self.now() - moment)


def moment_of(timestamp: object) -> float | None:
    """The moment of a time stamp of an object (seconds since the epoch); None: it is none, such as
    that of the year 1, which stands for never."""
    try:
        moment = datetime.fromisoformat(str(timestamp))
    except ValueError:
        return None
    return None if moment.tzinfo is None else _seconds(moment)


@lru_cache(maxsize=16_384)  # lists say the same at each look, and headers' form is slow to read
def loose_moment_of(stamp: object) -> float | None:
    """The moment of a time stamp, in ISO's form or that of headers, in UTC where it names no zone
    (seconds since the epoch); None: it is none."""
    return None if stamp is None else _moment_in(str(stamp))


@lru_cache(maxsize=4096)  # a list of jobs has the same ones again and again
def _moment_in(text: str) -> float | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, OverflowError):
            return _seconds(read(text))
    return None


def _seconds(moment: datetime) -> float | None:
    """The seconds since the epoch, in UTC where it names no zone; None: it is no moment of ours."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    seconds = aware.timestamp()
    return seconds if seconds > 0 else None
