"""The clock of an engine: the wall's time at its start, and steady from there."""

from __future__ import annotations

import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since the epoch (UTC) that neither leap nor go back while one head leads.

    A wall clock is stepped by hours when a machine finds its time server, or its administrator.
    Deadlines (back-off, stalls, the longest duration) are moments of this clock, so that such a
    step ends none of them early and postpones none.

    Args:
        not_before: the newest moment in the journal. A head that starts on a machine whose
            clock was set back goes on from there: what is due in a minute stays due in a minute.
        wall: seconds since the epoch.
        monotonic: seconds that never go back.
    """

    def __init__(
        self,
        not_before: float,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._ahead = max(wall(), not_before) - monotonic()

    def __call__(self) -> float:
        """Return the moment of now, in seconds since the epoch."""
        return self._monotonic() + self._ahead
