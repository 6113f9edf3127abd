"""The statements of the hot path: written in SQLAlchemy Core, compiled once, run by SQLite.

Each takes its values in the order of the columns it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Column, Table, bindparam, case, func, literal_column, null, or_, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.sql import ClauseElement

from dispatcher.store.schema import attempts, journal, metrics, trials

_DIALECT: Final = sqlite.dialect(paramstyle="qmark")


def compiled(statement: ClauseElement) -> str:
    """Compile a statement to SQL text, with a question mark for each parameter."""
    return str(statement.compile(dialect=_DIALECT))


def _names(table: Table, upto: str | None = None) -> list[str]:
    names = [column.name for column in table.columns]
    return names if upto is None else names[: names.index(upto) + 1]


def _insert(table: Table, names: Sequence[str]) -> Any:
    return insert(table).values({name: bindparam(name) for name in names})


INSERT_JOURNAL: Final = compiled(_insert(journal, _names(journal)))

#: A message that comes twice finds its place taken, and the first one stays.
INSERT_METRIC: Final = compiled(_insert(metrics, _names(metrics)).on_conflict_do_nothing())

# -- trials: the core's record, replaced whole but for what must not be forgotten -----------

#: Columns that mirror the core's record, in the order in which ``trial_rows`` fills them.
RECORD_COLUMNS: Final = tuple(_names(trials, "ended_at"))


def _upsert_trial(*, if_other: bool) -> str:
    new = _insert(trials, [*RECORD_COLUMNS, "cpu_s", "wall_s", "touched"])
    assigned: dict[str, Any] = {name: new.excluded[name] for name in RECORD_COLUMNS if name != "id"}
    # The core drops these from the record of a trial that has ended; here they stay.
    dropped = func.nullif(new.excluded["parameters"], literal_column("''"))
    assigned["parameters"] = func.coalesce(dropped, trials.c.parameters)
    for kept in ("restore_path", "final", "told", "number"):
        assigned[kept] = func.coalesce(new.excluded[kept], trials.c[kept])
    for first in ("asked_at", "ended_at"):
        assigned[first] = func.coalesce(trials.c[first], new.excluded[first])
    other = or_(*(trials.c[name].is_distinct_from(value) for name, value in assigned.items()))
    assigned["touched"] = new.excluded["touched"]
    where = other if if_other else None
    return compiled(new.on_conflict_do_update(index_elements=["id"], set_=assigned, where=where))


UPSERT_TRIAL: Final = _upsert_trial(if_other=False)

#: The same for records that may have changed in nothing that a row shows, such as a wish to stop:
#: a row that would be what it is is not touched.
UPSERT_IF_OTHER: Final = _upsert_trial(if_other=True)

# -- what the events add to the record -----------------------------------------------------


def _note(*names: str, first: Sequence[str] = (), add: Sequence[str] = ()) -> str:
    """Update a trial: set ``names``, set ``first`` if still empty, add to ``add``; then the id."""
    column: dict[str, Column[Any]] = dict(trials.c.items())
    assigned: dict[str, Any] = {name: bindparam(name) for name in names}
    assigned |= {name: func.coalesce(column[name], bindparam(name)) for name in first}
    assigned |= {name: column[name] + bindparam(name) for name in add}
    return compiled(update(trials).where(trials.c.id == bindparam("trial")).values(assigned))


NOTE_PROPOSED: Final = _note(first=["proposed_at"])
NOTE_REQUEST_FAILED: Final = _note("error")
NOTE_TUNER_ERROR: Final = _note("tuner_error")
NOTE_STARTED: Final = _note(first=["started_at"])
NOTE_ENDED: Final = _note("end_reason", "exit_code", "signal", "error", add=["cpu_s", "wall_s"])

#: Why a trial was never started; or, of one with a result, why that does not count.
NOTE_REFUSED: Final = compiled(
    update(trials)
    .where(trials.c.id == bindparam("trial"))
    .values(
        number=case((trials.c.final.is_(None), trials.c.number), else_=null()),
        end_reason=case(
            (trials.c.final.is_(None), bindparam("end_reason")), else_=trials.c.end_reason
        ),
        error=bindparam("error"),
    )
)

# -- attempts ------------------------------------------------------------------------------

STARTED_COLUMNS: Final = ("trial", "attempt", "worker", "pid", "started_at")
ENDED_COLUMNS: Final = (
    "trial", "attempt", "worker", "ended_at", "end_reason", "exit_code", "signal", "text",
    "cpu_s", "wall_s",
)  # fmt: skip


def _upsert_attempt(names: Sequence[str]) -> str:
    """Insert an attempt or complete it: the first report of its start stays, and of its end. One
    that comes again changes nothing."""
    new = _insert(attempts, names)
    assigned = {
        name: func.coalesce(attempts.c[name], new.excluded[name])
        for name in names
        if name not in ("trial", "attempt")
    }
    other = or_(*(attempts.c[name].is_distinct_from(value) for name, value in assigned.items()))
    key = ["trial", "attempt"]
    return compiled(new.on_conflict_do_update(index_elements=key, set_=assigned, where=other))


UPSERT_STARTED: Final = _upsert_attempt(STARTED_COLUMNS)
UPSERT_ENDED: Final = _upsert_attempt(ENDED_COLUMNS)
