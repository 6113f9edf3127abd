"""The read models' rows of a trial, made of the core's records and the events beside them.

The head and :mod:`dispatcher.store.verify` make them by the same functions, so the two cannot
differ by accident.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from dispatcher.core import worker_of
from dispatcher.core.events import (
    AttemptEnded,
    AttemptStarted,
    EndDelivered,
    Proposed,
    RequestFailed,
    ResultDelivered,
)
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, Trial, TrialState
from dispatcher.ports import JournalEntry
from dispatcher.store import statements
from dispatcher.store.touches import stamp
from dispatcher.store.values import number_of

Row = tuple[Any, ...]
_OVER: Final = frozenset({TrialState.DELIVERING, TrialState.ENDED})
_encode: Final = msgspec.json.Encoder().encode


def trial_row(trial: Trial, touch: int) -> Row:
    """Return the values of ``statements.RECORD_COLUMNS``, then 0 s of CPU, 0 s of wall time, and
    the number of the change."""
    weights, verdict, since = trial.weights, trial.verdict, trial.since
    over = trial.state in _OVER
    result = trial.result if over else trial.final
    return (
        trial.id,
        trial.state,
        since,
        trial.parameters,
        trial.save_path,
        trial.restore_path,
        trial.parent,
        trial.by_hand,
        trial.asked,
        trial.attempt,
        trial.worker,
        trial.failures,
        trial.losses,
        trial.final,
        trial.result,
        None if result is None else number_of(result),
        None if weights is None else weights.digest,
        None if weights is None else weights.kind,
        None if weights is None else weights.nbytes,
        trial.self_published,
        trial.outcome,
        trial.success,
        None if verdict is None else verdict.reason or "",
        _encode(verdict.chain).decode() if verdict is not None and verdict.chain else None,
        since,  # asked_at: counts when the row is made
        since if over else None,
        0.0,
        0.0,
        touch,
    )


_OF_ATTEMPTS: Final = (statements.UPSERT_STARTED, statements.UPSERT_ENDED)

#: Makes (statement, values) pairs of an event that counted.
_Notes = Callable[[float, Any, str | None], Iterable[tuple[str, Row]]]


def _proposed(at: float, event: Proposed, _: str | None) -> list[tuple[str, Row]]:
    return [(statements.NOTE_PROPOSED, (at, event.trial))]


def _request_failed(_at: float, event: RequestFailed, _: str | None) -> list[tuple[str, Row]]:
    return [(statements.NOTE_REQUEST_FAILED, (event.text or event.kind, event.trial))]


def _delivered(
    _at: float, event: ResultDelivered | EndDelivered, _: str | None
) -> list[tuple[str, Row]]:
    if not event.error:
        return []
    return [(statements.NOTE_TUNER_ERROR, (event.error, event.trial))]


def _started(at: float, event: AttemptStarted, place: str | None) -> list[tuple[str, Row]]:
    trial = event.trial
    return [
        (statements.UPSERT_STARTED, (trial, event.attempt, place, event.pid or None, at)),
        (statements.NOTE_STARTED, (at, trial)),
    ]


def _ended(at: float, event: AttemptEnded, place: str | None) -> list[tuple[str, Row]]:
    trial, exit_code, signal, text = event.trial, event.exit_code, event.signal, event.text or None
    cpu_s, wall_s = event.cpu_s, event.wall_s
    attempt = (trial, event.attempt, place, at, event.reason, exit_code, signal, text)
    return [
        (statements.UPSERT_ENDED, (*attempt, cpu_s, wall_s)),
        (statements.NOTE_ENDED, (event.reason, exit_code, signal, text, cpu_s, wall_s, trial)),
    ]


NOTES: Final[dict[type, _Notes]] = {
    Proposed: _proposed,
    RequestFailed: _request_failed,
    ResultDelivered: _delivered,
    EndDelivered: _delivered,
    AttemptStarted: _started,
    AttemptEnded: _ended,
}


#: What :func:`lagging` looks at: whatever moves a trial changes one of these.
_COMPARED: Final = ("id", "state", "since", "asked", "attempt")
ROWS_TO_COMPARE: Final = f"SELECT {', '.join(_COMPARED)} FROM trials"  # noqa: S608 - our names


def lagging(rows: Iterable[Row], trials: Mapping[TrialId, Trial]) -> Iterator[TrialId]:
    """Yield trials whose rows differ from their records, or are missing: they were among many that
    one event had changed when a head was killed, and no later event need name them."""
    written = {row[0]: row for row in rows}
    for trial in trials.values():
        if written.get(trial.id) != tuple(getattr(trial, name) for name in _COMPARED):
            yield trial.id


def write_earlier(raw: sqlite3.Connection, earlier: Iterable[Trial], touch: int) -> None:
    """Write rows of trials as they were in the midst of a batch, before those of its end.

    Args:
        raw: a writer's connection, in a transaction.
        earlier: records, in the order in which they were so.
        touch: the number of this change.
    """
    raw.executemany(statements.UPSERT_IF_OTHER, [trial_row(each, touch) for each in earlier])


def write_rows(
    raw: sqlite3.Connection,
    entries: Iterable[JournalEntry],
    touched: Mapping[TrialId, Trial],
    touch: int,
) -> None:
    """Update both read models after a batch, inside the caller's transaction.

    Args:
        raw: a writer's connection.
        entries: the batch.
        touched: records of all trials that it changed.
        touch: the number of this change.
    """
    notes = list(_notes(entries, touched))
    noted = {trial for trial, _, _ in notes}
    named = [trial_row(trial, touch) for trial in touched.values() if trial.id in noted]
    others = [trial_row(trial, touch) for trial in touched.values() if trial.id not in noted]
    raw.executemany(statements.UPSERT_TRIAL, named)
    raw.executemany(statements.UPSERT_IF_OTHER, others)
    beside = set[int]()
    for trial_id, statement, row in notes:
        if raw.execute(statement, row).rowcount and trial_id not in touched:
            beside.add(trial_id)
    for trial in touched.values():
        if trial.refusal:  # no event reports it: the core decided it
            raw.execute(statements.NOTE_REFUSED, (EndReason.START_FAILED, trial.refusal, trial.id))
    stamp(raw, beside, touch)


def _notes(
    entries: Iterable[JournalEntry], touched: Mapping[TrialId, Trial]
) -> Iterator[tuple[TrialId, str, Row]]:
    """Yield what the events add to the record, each with its trial."""
    for entry in entries:
        event: Any = entry.event
        notes = NOTES.get(type(event))
        if notes is None:
            continue
        place = entry.worker or worker_of(touched, event)
        for statement, row in notes(entry.at, event, place):
            # A superseded attempt's report of its end belongs to that attempt alone.
            if entry.counted or statement in _OF_ATTEMPTS:
                yield event.trial, statement, row
