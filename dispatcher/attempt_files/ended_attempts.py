"""The attempts that have ended, each as it ends: one look at the store for all workers."""

from __future__ import annotations

from dispatcher.attempt_files.attempt_at import AttemptAt
from dispatcher.queries import ExperimentReader

#: By the count of changes (decision 0081), so that a look takes as long as there is news, whatever
#: trials there were before. One attempt that was lost with its machine has no reported end: its
#: successor, or its trial's end, shows it.
ENDED = (
    "SELECT a.worker, a.trial, a.attempt, a.pid FROM trials t CROSS JOIN attempts a "
    "ON a.trial = t.id WHERE {touched} > ? AND +t.id >= ? "
    "AND (a.end_reason IS NOT NULL OR t.attempt > a.attempt OR t.state = 'ended') "
    "ORDER BY a.trial, a.attempt"
)


#: The first schema that counts changes; stores of older ones are read as a whole each time.
_COUNTING = "0003"


class EndedAttempts:
    """See above. Thread: one.

    Args:
        reader: of the experiment.
        below: trials below this number are of no interest.
    """

    def __init__(self, reader: ExperimentReader, below: int) -> None:
        self._reader = reader
        self._below = below
        self._seen = -1  # changes up to this one
        self._touched = "t.touched" if reader.schema >= _COUNTING else "0"

    @property
    def bound(self) -> int:
        """The first trial that had not ended at the newest look; none below it will leave more."""
        return self._below

    def look(self) -> list[AttemptAt]:
        """Read the attempts that have ended since the look before; some of them come once more.

        Raises:
            StoreError: the store cannot be read.
        """
        # Both before the ended ones: a trial that ends in between is found the next time.
        bound = self._first_that_goes_on()
        newest = self._newest()
        ended = ENDED.format(touched=self._touched)
        rows = self._reader.rows(ended, (self._seen, self._below))
        self._seen = newest
        self._below = max(self._below, bound)
        return [AttemptAt(r["worker"], r["trial"], r["attempt"], r["pid"] or 0) for r in rows]

    def _newest(self) -> int:
        """The newest change; where nobody counts them, all is news each time."""
        if self._touched == "0":
            return -1
        row = self._reader.row("SELECT max(touched) AS touched FROM trials")
        return -1 if row is None or row["touched"] is None else int(row["touched"])

    def _first_that_goes_on(self) -> int:
        row = self._reader.row(
            "SELECT id FROM trials WHERE id >= ? AND state <> 'ended' ORDER BY id LIMIT 1",
            (self._below,),
        ) or self._reader.row("SELECT max(id) + 1 AS id FROM trials")
        return 0 if row is None or row["id"] is None else int(row["id"])
