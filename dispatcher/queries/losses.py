"""Reasons of attempts that ended with their worker: nobody has seen their ends, and their rows name
none; the journal has what was reported of the worker."""

from __future__ import annotations

from typing import Final

from dispatcher.errors import ProtocolError
from dispatcher.queries.reader import ExperimentReader

_FIRST: Final = "SELECT min(n) AS n FROM journal WHERE trial = ? AND attempt = ?"

# The first row of what followed the attempt: by then its worker was lost.
_NEXT: Final = """
    SELECT min(n) AS n FROM journal
    WHERE trial = ? AND n > ? AND (attempt > ? OR kind = 'EndDelivered')
"""

_LOSSES: Final = """
    SELECT payload FROM journal
    WHERE n > ? AND n < ? AND kind = 'WorkerLost' ORDER BY n LIMIT 1000
"""

_LAST: Final = (1 << 63) - 1


def reason_of_loss(
    reader: ExperimentReader, trial: int, attempt: int, worker: str | None
) -> str | None:
    """Return why the worker of an attempt was lost, in the words of its scheduler or machine; None
    if the journal does not have it (any more).

    Args:
        reader: the experiment.
        trial: the number of its trial.
        attempt: its number within the trial; its end was not seen.
        worker: that it ran on.
    """
    from dispatcher import codec  # the core with it: too much for each list of trials
    from dispatcher.core.events import WorkerLost

    first = reader.row(_FIRST, (trial, attempt))
    if first is None or first["n"] is None:
        return None
    following = reader.row(_NEXT, (trial, first["n"], attempt))
    until = _LAST if following is None or following["n"] is None else following["n"]
    for row in reader.rows(_LOSSES, (first["n"], until)):
        try:
            event = codec.decode("WorkerLost", row["payload"])
        except ProtocolError:
            return None  # 'experiment verify' says what is wrong with it
        if isinstance(event, WorkerLost) and event.worker == worker and not event.kept_out:
            return event.reason
    return None
