"""What an assessor was shown of all trials: their intermediate metrics, and how they ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from dispatcher.core.model import TrialState
from dispatcher.ports import Shown

# In one order by the head's clock; where that stands still a trial's metrics come before its end.
_IN_ORDER: Final = """
    SELECT at, 0 AS over, trial, attempt, seq, value, 0 FROM metrics WHERE counted AND NOT final
    UNION ALL
    SELECT ended_at, 1, id, 0, 0, NULL, success FROM trials WHERE state = ? AND ended_at IS NOT NULL
    ORDER BY 1, 2, 3, 4, 5
"""


def assessed(raw: sqlite3.Connection) -> Iterator[Shown]:
    """See :meth:`dispatcher.ports.Journal.assessed`. Raises sqlite3's errors."""
    for _, _, trial, attempt, seq, value, success in raw.execute(_IN_ORDER, (TrialState.ENDED,)):
        yield Shown(trial, value, attempt, seq, bool(success))
