"""The statements of the hot path, made from the columns of the tables.

Each takes its values in the order of the columns it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dispatcher.store.schema import Table, attempts, journal, metrics, trials


def _insert(table: Table, names: Iterable[str]) -> str:
    names = tuple(names)
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - our own names


def _upsert(
    table: Table, names: Iterable[str], assigned: Mapping[str, str], *, if_other: bool
) -> str:
    """Insert a row, or assign to the one that has its key; with ``if_other``, where that changes
    something."""
    changes = ", ".join(f"{name} = {value}" for name, value in assigned.items())
    text = f"{_insert(table, names)} ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {changes}"
    if not if_other:
        return text
    other = (
        f"{table.name}.{name} IS NOT {value}"
        for name, value in assigned.items()
        if name != "touched"
    )
    return f"{text} WHERE {' OR '.join(other)}"


INSERT_JOURNAL: Final = _insert(journal, journal.columns)

#: A message that comes twice finds its place taken, and the first one stays.
INSERT_METRIC: Final = f"{_insert(metrics, metrics.columns)} ON CONFLICT DO NOTHING"

# -- trials: the core's record, replaced whole but for what must not be forgotten -----------

#: Columns that mirror the core's record, in the order in which ``trial_rows`` fills them.
RECORD_COLUMNS: Final = tuple(trials.columns)[: tuple(trials.columns).index("ended_at") + 1]


def _upsert_trial(*, if_other: bool) -> str:
    assigned = {name: f"excluded.{name}" for name in RECORD_COLUMNS if name != "id"}
    # The core drops these from the record of a trial that has ended; here they stay.
    assigned["parameters"] = "coalesce(nullif(excluded.parameters, ''), trials.parameters)"
    for kept in ("restore_path", "final", "told", "number"):
        assigned[kept] = f"coalesce(excluded.{kept}, trials.{kept})"
    for first in ("asked_at", "ended_at"):
        assigned[first] = f"coalesce(trials.{first}, excluded.{first})"
    assigned["touched"] = "excluded.touched"
    names = (*RECORD_COLUMNS, "cpu_s", "wall_s", "touched")
    return _upsert(trials, names, assigned, if_other=if_other)


UPSERT_TRIAL: Final = _upsert_trial(if_other=False)

#: The same for records that may have changed in nothing that a row shows, such as a wish to stop:
#: a row that would be what it is is not touched.
UPSERT_IF_OTHER: Final = _upsert_trial(if_other=True)

# -- what the events add to the record -----------------------------------------------------


def _note(*names: str, first: Sequence[str] = (), add: Sequence[str] = ()) -> str:
    """Update a trial: set ``names``, set ``first`` if still empty, add to ``add``; then the id."""
    assigned = [f"{name} = ?" for name in names]
    assigned += [f"{name} = coalesce({name}, ?)" for name in first]
    assigned += [f"{name} = {name} + ?" for name in add]
    return f"UPDATE trials SET {', '.join(assigned)} WHERE id = ?"  # noqa: S608 - our own names


NOTE_PROPOSED: Final = _note(first=["proposed_at"])
NOTE_REQUEST_FAILED: Final = _note("error")
NOTE_TUNER_ERROR: Final = _note("tuner_error")
NOTE_STARTED: Final = _note(first=["started_at"])
NOTE_ENDED: Final = _note("end_reason", "exit_code", "signal", "error", add=["cpu_s", "wall_s"])

#: Why a trial was never started; or, of one with a result, why that does not count.
NOTE_REFUSED: Final = """
UPDATE trials SET
    number = CASE WHEN final IS NULL THEN number END,
    end_reason = CASE WHEN final IS NULL THEN ? ELSE end_reason END,
    error = ?
WHERE id = ?
"""

# -- attempts ------------------------------------------------------------------------------

STARTED_COLUMNS: Final = ("trial", "attempt", "worker", "pid", "started_at")
ENDED_COLUMNS: Final = (
    "trial", "attempt", "worker", "ended_at", "end_reason", "exit_code", "signal", "text",
    "cpu_s", "wall_s",
)  # fmt: skip


def _upsert_attempt(names: Sequence[str]) -> str:
    """Insert an attempt or complete it: the first report of its start stays, and of its end. One
    that comes again changes nothing."""
    assigned = {
        name: f"coalesce(attempts.{name}, excluded.{name})"
        for name in names
        if name not in attempts.key
    }
    return _upsert(attempts, names, assigned, if_other=True)


UPSERT_STARTED: Final = _upsert_attempt(STARTED_COLUMNS)
UPSERT_ENDED: Final = _upsert_attempt(ENDED_COLUMNS)
