"""The rate at which trials end, and the time that is left: one rule for all who show them.

It is made from the store and the clock alone, so two who look at the same moment see the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dispatcher.queries.reader import ExperimentReader

# The rate is taken over the latest trials only: what was slow an hour ago says little.
_RATE_TRIALS: Final = 200
_RATE_WINDOW_S: Final = 600.0


def recent_ends(reader: ExperimentReader, now: float) -> tuple[float, ...]:
    """Return when the latest trials ended, the latest first, for :func:`rate_of`."""
    rows = reader.rows(
        "SELECT ended_at FROM trials WHERE ended_at > ? AND attempt > 0 "
        "ORDER BY ended_at DESC LIMIT ?",
        (now - _RATE_WINDOW_S, _RATE_TRIALS),
    )
    return tuple(row[0] for row in rows)


def rate_of(ends: Sequence[float], now: float) -> float | None:
    """Return the trials that ended per second of late; None where there are too few to say so."""
    recent = [at for at in ends if at > now - _RATE_WINDOW_S]
    if len(recent) < 2:
        return None
    since_first = now - recent[-1]
    return (len(recent) - 1) / since_first if since_first > 0 else None


def time_left(
    rate: float | None,
    *,
    trials: int | None,
    duration_s: float | None = None,
    stands: bool = False,
) -> float | None:
    """Return the seconds until the first limit: of trials, at this rate, or of time.

    Args:
        rate: trials per second.
        trials: still to come; None: there is no limit.
        duration_s: still to come; None: there is no limit, or it is not known.
        stands: all stand still, so that a rate of the past says nothing of what is to come.
    """
    bounds = []
    if trials is not None and rate and not stands:
        bounds.append(max(0, trials) / rate)
    if duration_s is not None:
        bounds.append(max(0.0, duration_s))
    return min(bounds) if bounds else None
