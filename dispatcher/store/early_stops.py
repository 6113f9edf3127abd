"""Metrics that a replay must know, read from their table: they leave no rows in the journal.

Of attempts that run, the newest one. Of an attempt that was stopped early, the metric that its
trial's result was made of: since 0.2 the journal has it (``LastMetricKept``), and it is looked up
here for journals that were written before. These have a fault, too: where the agent was lost before
such an attempt had ended, no replay found the metric. Either the tuner had the result already, and
no head could take the experiment up again; or it never got the result.

Whatever is read here reaches the state through ``core.apply``, as it did when it was reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from dispatcher import codec
from dispatcher.core import apply
from dispatcher.core.events import AttemptEnded, Event, MetricReported, TrialStopRequested
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, Outcome, State
from dispatcher.errors import ProtocolError
from dispatcher.ports import Journal, JournalRow
from dispatcher.store.faults import DamagedStore
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.values import number_of

#: Queries the store: a statement and its values.
Ask = Callable[[str, tuple[object, ...]], list[Any]]

_EARLY: Final = EndReason.STOPPED_EARLY

_LAST_METRIC: Final = """
    SELECT attempt, seq, value, number FROM metrics WHERE trial = ? AND counted AND NOT final
    ORDER BY attempt DESC, seq DESC LIMIT 1
"""

# What became of a trial. One that has ended without a result stays so, whatever there was.
_STORY: Final = """
    SELECT max(kind = 'LastMetricKept'), max(kind = 'EndDelivered'),
        max(CASE WHEN kind = 'ResultDelivered' THEN n ELSE 0 END)
    FROM journal WHERE trial = ?
"""

_STOPS: Final = """
    SELECT payload FROM journal WHERE kind = 'TrialStopRequested' AND n > ? ORDER BY n
"""
_ENDS: Final = """
    SELECT kind, payload FROM journal
    WHERE trial = ? AND attempt = ? AND kind IN ('AttemptEnded', 'FinalReported')
"""
_HEAD_SINCE: Final = "SELECT 1 FROM journal WHERE kind = 'HeadStarted' AND n > ? LIMIT 1"


def recall(journal: Journal, state: State) -> None:
    """Apply the newest metric of each running attempt again, to a state that was read back.

    What it made the head do then (it told an assessor) is done.
    """
    for trial_id in state.running:
        attempt = state.trials[trial_id].attempt
        newest = journal.last_metric(trial_id, attempt)
        if newest is not None:
            apply(state, MetricReported(trial_id, attempt, *newest), state.now)


def rows_as_judged(journal: Journal, after: int) -> Iterator[JournalRow]:
    """Read the rows after row ``after``; of an older store also the metrics by which attempts were
    judged that were stopped early, each under the number of the row that it comes before.

    Raises:
        StoreError: the journal cannot be read.
    """
    if not isinstance(journal, SqliteJournal):
        yield from journal.rows(after)  # in memory: of this version
        return
    for row in journal.rows(after):
        try:
            metric = _judged_by(journal.query, row.event)
        except ProtocolError as error:
            raise DamagedStore(
                f"journal row {row.number} cannot be replayed: {error.message}",
                hint="restore the experiment from a backup",
                where=str(journal.path),
            ) from error
        if metric is not None:
            yield JournalRow(row.number, row.at, metric)
        yield row


def _judged_by(ask: Ask, event: Event) -> MetricReported | None:
    """Return the metric that comes before this row, so that a replay decides as the head did.

    Raises:
        ProtocolError: the metric is not what was written.
    """
    if not isinstance(event, AttemptEnded | TrialStopRequested) or event.reason is not _EARLY:
        return None
    kept, over, delivered_row = ask(_STORY, (event.trial,))[0]
    if kept or (over and not delivered_row):
        return None
    return _last_metric(ask, event.trial)


def _last_metric(ask: Ask, trial: TrialId) -> MetricReported | None:
    """Read the last metric of the newest attempt that reported; metrics of attempts that are
    superseded at this row are not counted."""
    rows = ask(_LAST_METRIC, (trial,))
    if not rows:
        return None
    attempt, seq, value, number = rows[0]
    if number_of(value) != number:
        raise ProtocolError("the metric by which its attempt was judged has changed")
    return MetricReported(trial, attempt, seq, value)


def mended(ask: Ask, state: State, after: int) -> str:
    """Describe results that only this version finds, for the first head that does; empty if there
    are none. Reads the journal once, where results of early stops are kept at all.

    Args:
        ask: queries the store.
        state: the state after the journal's last row.
        after: the row of the base with which it begins; 0 if there is none.
    """
    if not state.settings.early_stop_keeps_result:
        return ""
    found = dict.fromkeys(
        event.trial
        for (payload,) in ask(_STOPS, (after,))
        if _is_mended(ask, state, event := codec.decode("TrialStopRequested", payload))
    )
    if not found:
        return ""
    which = ", ".join(f"{trial}" for trial in found)
    many = len(found) > 1
    return (
        f"{'trials' if many else 'trial'} {which} {'were' if many else 'was'} stopped early and "
        f"lost with {'their' if many else 'its'} agent; an older bequeath left the "
        f"{'results' if many else 'result'} out of the journal, so that it could not go on from "
        f"there, or not tell the tuner: {'they are' if many else 'it is'} taken from the metrics"
    )


def _is_mended(ask: Ask, state: State, stop: TrialStopRequested) -> bool:
    trial = state.trials.get(stop.trial)
    if trial is None or trial.outcome is not Outcome.STOPPED_EARLY:
        return False
    metric = _judged_by(ask, stop)
    if metric is None or metric.attempt != trial.attempt:
        return False
    for kind, payload in ask(_ENDS, (trial.id, trial.attempt)):
        end = codec.decode(kind, payload)
        if not isinstance(end, AttemptEnded) or end.reason is _EARLY:
            return False  # it has a final result, or older versions find this one, too
    _, _, delivered_row = ask(_STORY, (stop.trial,))[0]
    return not delivered_row or not ask(_HEAD_SINCE, (delivered_row,))
