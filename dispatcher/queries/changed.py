"""Changes since a reader looked: of trials with their attempts and weights, and new metrics.

For pages, sinks and programs that hold what they have read and want to know no more than what
became of it. A cursor stands for a place in the order of all changes. A row is where it was touched
last (``dispatcher.store.touches``), so an answer holds each trial once, as it is now, and what is
touched again later comes again, behind the cursor. Compacted journals and heads that come and go do
not matter to it. A follower that has read what a power cut took back, or whose store was replaced
by an older copy, hears that it has to begin anew.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final, NamedTuple

from dispatcher.errors import StoreError, UserError
from dispatcher.queries.notes import given_to
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import Attempt, MetricPoint, Record, TrialSummary
from dispatcher.queries.trials import attempts_of

#: Trials and metrics in one answer, at most.
MOST: Final = 10_000

#: Characters of texts of trials in one answer, and of metrics: a trial may have megabytes of them.
MOST_TEXT: Final = 8 << 20

#: The first schema that counts changes. In older ones all rows are as of change 0.
_COUNTING: Final = "0003"

# In one change metrics come before trials: whoever reads that a trial is over has its metrics.
_METRIC, _TRIAL, _ALL = 0, 1, 2

#: Characters of a cursor; ours have less.
_LONGEST: Final = 120

#: The name of the lead in cursors of stores in which nobody counts.
NOBODY: Final = "0"


@dataclass(frozen=True, slots=True)
class WeightsStanding(Record):
    """The fate of the weights that a trial has committed (which the trial itself names)."""

    going: bool  # to be removed, or removed
    removed_at: float | None
    pinned: str | None  # the note, if somebody keeps them whatever retention says


@dataclass(frozen=True, slots=True)
class ChangedTrial(Record):
    """A trial as it is now, since something of it has changed. Why an attempt was lost whose end
    nobody saw is the journal's to say: :func:`dispatcher.queries.trial` asks it."""

    trial: TrialSummary
    attempts: tuple[Attempt, ...]
    weights: WeightsStanding


@dataclass(frozen=True, slots=True)
class ReportedMetric(Record):
    """A metric that has come."""

    trial: int
    point: MetricPoint


@dataclass(frozen=True, slots=True)
class Changes(Record):
    """The changes after a cursor, up to another one.

    With ``anew`` the cursor could not be followed: what was read before counts no more, and this is
    the beginning of everything. If it is not ``exact``, changes are not counted (by a head or in a
    store of an older version): cursors lead through all there is, and after that to nothing, so
    whoever wants to know more begins again without one.
    """

    trials: tuple[ChangedTrial, ...]  # the one that was touched last comes last
    metrics: tuple[ReportedMetric, ...]  # in the order in which they came
    cursor: str
    more: bool  # a bound was reached: there is more at once
    anew: bool
    exact: bool
    row: int  # the newest of the journal as of then


class _Place(NamedTuple):
    """A place in the order of changes: behind the row of this key."""

    touched: int
    kind: int = _ALL
    trial: int = 0
    attempt: int = 0
    seq: int = 0


_BEGINNING: Final = _Place(-1)


def changes(
    reader: ExperimentReader, after: str = "", *, most: int = 1_000, metrics: bool = True
) -> Changes:
    """Read what changed after a cursor; nothing is left out, and nothing that did not change is in.

    Args:
        reader: the experiment.
        after: the cursor of the answer before; empty to begin with all there is.
        most: trials and metrics in the answer, together; at least 1, at most ``MOST``. There are
            less where they hold much text.
        metrics: false to pass over metrics, in every question of this follower.

    Raises:
        UserError: the cursor is none of ours, or ``most`` is out of bounds.
        StoreError: the store cannot be read.
    """
    if not 1 <= most <= MOST:
        raise UserError(f"{most} changes cannot be asked for at once", hint=f"1 to {MOST:,} can")
    name, asked = _read_cursor(after)
    with reader.moment():
        newest = _newest(reader)
        lead = _lead(reader)
        anew = bool(after) and not _leads_on(reader, name, asked, newest, lead)
        place = asked if after and not anew else _BEGINNING
        read = [_trials_after(reader, place, most)]
        if metrics:
            read.append(_metrics_after(reader, place, most))
        rows, more = _in_order(read, most)
        reached = rows[-1][0] if more else _Place(newest)
        standing = {row["id"]: _standing(row) for at, row in rows if at.kind == _TRIAL}
        trials = [TrialSummary.from_row(row) for at, row in rows if at.kind == _TRIAL]
        attempts = attempts_of(reader, trials)
        row_now = _journal_row(reader)
    return Changes(
        trials=tuple(ChangedTrial(one, attempts[one.id], standing[one.id]) for one in trials),
        metrics=tuple(
            ReportedMetric(row["trial"], MetricPoint.from_row(row))
            for at, row in rows
            if at.kind == _METRIC
        ),
        cursor=_cursor_text(lead, reached),
        more=more,
        anew=anew,
        exact=lead is not None,
        row=row_now,
    )


def cursor_now(reader: ExperimentReader) -> str:
    """Return the cursor behind all that has changed so far, for whoever reads all of it in the same
    :meth:`~dispatcher.queries.reader.ExperimentReader.moment` by other queries."""
    with reader.moment():
        return _cursor_text(_lead(reader), _Place(_newest(reader)))


def is_cursor(text: str) -> bool:
    """Whether a text can be the cursor of an answer; the empty one begins anew."""
    try:
        _read_cursor(text)
    except UserError:
        return False
    return True


# -- who counts ------------------------------------------------------------------------------


def _counts(reader: ExperimentReader) -> bool:
    return reader.schema >= _COUNTING


def _newest(reader: ExperimentReader) -> int:
    if not _counts(reader):
        return 0
    row = reader.row(
        "SELECT max((SELECT coalesce(max(touched), 0) FROM trials), "
        "(SELECT coalesce(max(touched), 0) FROM metrics))"
    )
    if row is None or not isinstance(row[0], int):
        raise StoreError(
            "the store's count of changes cannot be read",
            hint="'bequeath experiment verify --rebuild' makes it anew",
            where=str(reader.folder),
        )
    return row[0]


def _lead(reader: ExperimentReader) -> str | None:
    """Return the name of the newest head's lead; None if that head does not count: its code, or
    that of all heads so far, is older than the store's schema."""
    return lead_of(reader, reader.meta("epoch"))


def lead_of(reader: ExperimentReader, epoch: str | None) -> str | None:
    """Return the name of a head's lead, which no other one has, also of a store that took another
    one's place; None if that head does not count changes."""
    if not _counts(reader):
        return None
    row = reader.row("SELECT name FROM leads WHERE epoch = CAST(? AS INTEGER)", (epoch,))
    return None if row is None else str(row[0])


def _leads_on(
    reader: ExperimentReader, name: str, place: _Place, newest: int, lead: str | None
) -> bool:
    """Whether all that a reader had seen at this place is in the store, as it was or changed by
    what comes later in the order."""
    if lead is None or name == NOBODY:
        return lead is None and name == NOBODY
    if place.touched > newest:
        return False
    if name == lead:
        return True
    row = reader.row(
        "SELECT touched FROM leads WHERE epoch > (SELECT epoch FROM leads WHERE name = ?) "
        "ORDER BY epoch LIMIT 1",
        (name,),
    )
    return row is not None and place.touched <= int(row[0])


# -- rows in the order of changes --------------------------------------------------------------


class _PlacedRow(NamedTuple):
    place: _Place
    row: sqlite3.Row


class _Read(NamedTuple):
    """Rows of one table in their order, and whether there are no more."""

    rows: list[_PlacedRow]
    all: bool


def _in_order(read: list[_Read], most: int) -> tuple[list[_PlacedRow], bool]:
    """Merge what was read, as far as nothing can lie between; and whether there is more."""
    ends = [each.rows[-1].place for each in read if not each.all]
    rows = sorted((row for each in read for row in each.rows), key=_place)
    sure = [row for row in rows if not ends or row.place <= min(ends)]
    return sure[:most], bool(ends) or len(rows) > most


def _place(row: _PlacedRow) -> _Place:
    return row.place


def _placed(place: _Place, row: sqlite3.Row) -> _PlacedRow:
    if all(isinstance(number, int) for number in place):
        return _PlacedRow(place, row)
    raise StoreError(
        f"the store holds a row whose place is no number: {place.touched!r}",
        hint="'bequeath experiment verify' says what is wrong with it",
    )


def _trials_after(reader: ExperimentReader, place: _Place, most: int) -> _Read:
    # Behind a metric come all trials of the same change.
    trial = {_METRIC: -1, _TRIAL: place.trial}.get(place.kind, _NO_MORE)
    source = "trials" if _counts(reader) else "(SELECT *, 0 AS touched FROM trials)"
    rows, whole = reader.rows_upto(
        "SELECT t.*, w.path IS NOT NULL AS going, w.removed_at AS weights_removed_at, "  # noqa: S608
        f"p.note AS pinned, {given_to(reader, 't.id')} FROM {source} t "
        "LEFT JOIN weights_removed w ON w.path = t.save_path "
        "LEFT JOIN pins p ON p.trial = t.id WHERE (t.touched, t.id) > (?, ?) "
        "ORDER BY t.touched, t.id LIMIT ?",
        (place.touched, trial, most + 1),
        MOST_TEXT,
    )
    return _Read([_placed(_Place(r["touched"], _TRIAL, r["id"]), r) for r in rows], whole)


def _metrics_after(reader: ExperimentReader, place: _Place, most: int) -> _Read:
    # Behind a trial comes no metric of the same change.
    key = (place.trial, place.attempt, place.seq)
    key = key if place.kind == _METRIC else (_NO_MORE,) * 3
    source = "metrics" if _counts(reader) else "(SELECT *, 0 AS touched FROM metrics)"
    rows, whole = reader.rows_upto(
        f"SELECT * FROM {source} WHERE (touched, trial, attempt, seq) > (?, ?, ?, ?) "  # noqa: S608
        "ORDER BY touched, trial, attempt, seq LIMIT ?",
        (place.touched, *key, most + 1),
        MOST_TEXT,
    )
    places = [_Place(r["touched"], _METRIC, r["trial"], r["attempt"], r["seq"]) for r in rows]
    return _Read([_placed(one, row) for one, row in zip(places, rows, strict=True)], whole)


def _standing(row: sqlite3.Row) -> WeightsStanding:
    return WeightsStanding(bool(row["going"]), row["weights_removed_at"], row["pinned"])


def _journal_row(reader: ExperimentReader) -> int:
    row = reader.row("SELECT coalesce(max(n), 0) FROM journal")
    return 0 if row is None else int(row[0])


# -- cursors -----------------------------------------------------------------------------------

#: Greater than any key.
_NO_MORE: Final = (1 << 63) - 1


def _cursor_text(lead: str | None, place: _Place) -> str:
    """The lead's name, the change, and the key within it unless all of it was read."""
    key = {_METRIC: (place.trial, place.attempt, place.seq), _TRIAL: (place.trial,)}
    numbers = (place.touched, *key.get(place.kind, ()))
    return ".".join([lead or NOBODY, *map(str, numbers)])


def _read_cursor(text: str) -> tuple[str, _Place]:
    if not text:
        return "", _BEGINNING
    name, *rest = text.split(".") if len(text) <= _LONGEST else ("",)
    plain = name.isascii() and name.isalnum() and all(n.isascii() and n.isdigit() for n in rest)
    numbers = [int(one) for one in rest] if plain else []
    if len(numbers) not in (1, 2, 4) or max(numbers) > _NO_MORE:
        raise UserError(
            "this is no cursor of an answer of ours",
            hint="give back the one that came with the answer before, or none to begin anew",
        )
    touched, *key = numbers
    kind = {0: _ALL, 1: _TRIAL, 3: _METRIC}[len(key)]
    return name, _Place(touched, kind, *key)
