"""The journal applied row by row, to see what led a trial to where it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from dispatcher.core import State, apply, check
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Move
from dispatcher.errors import InternalError, UserError
from dispatcher.store.compaction import Compaction
from dispatcher.store.early_stops import rows_as_judged
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.history import first_state, state_of


class SteppedRow(NamedTuple):
    """An event that was applied; ``number`` is None for one that has no row."""

    number: int | None
    at: float
    event: e.Event
    counted: bool
    moves: tuple[Move, ...]


@dataclass(slots=True)
class SteppedPast:
    """State and events of a journal, or of its beginning."""

    first: int  # the first row that there is
    newest: int  # the newest row that there is
    until: int = 0  # the last row that was applied
    state: State | None = None
    kinds: Counter[str] = field(default_factory=Counter)  # events by their kind
    rows: list[SteppedRow] = field(default_factory=list)  # those that concern the trial
    refused: str = ""  # why the replay ends here, if an event is refused


def step_through(
    journal: SqliteJournal,
    *,
    until: int | None = None,
    trial: TrialId | None = None,
    then: Iterable[tuple[float, e.Event]] = (),
) -> SteppedPast:
    """Apply the rows of a journal, and say what they did to one trial.

    Args:
        journal: read only.
        until: the last row to apply; None: all of them.
        trial: whose events and moves are kept; None keeps none.
        then: events that are applied behind the last row.

    Raises:
        UserError: the row, or what led to it, is not there any more.
        StoreError: the journal cannot be read.
    """
    base = Compaction(journal).base()
    stepped = SteppedPast(1 if base is None else base.number + 1, journal.last)
    if base is not None:
        if until is not None and until < base.number:
            raise UserError(
                f"rows up to {base.number} were folded into one state; their events are gone",
                hint=f"ask for row {base.number} or a later one",
                where=str(journal.path),
            )
        stepped.until, stepped.state = base.number, state_of(base)
    for number, at, event in _rows(journal, stepped, until, then):
        if stepped.state is None:
            stepped.state = first_state(event)
        stepped.kinds[type(event).__name__] += 1
        stepped.state.trace = []
        try:
            counted = apply(stepped.state, event, at).counted
            if number is None:
                check(stepped.state)  # as a head does that debugs
        except InternalError as error:
            row = "the event" if number is None else f"row {number}"
            stepped.refused = f"{row} is refused: {error.message}"
            counted = False
        moves = tuple(one for one in stepped.state.trace if one.trial == trial)
        if trial is not None and (moves or getattr(event, "trial", None) == trial):
            stepped.rows.append(SteppedRow(number, at, event, counted, moves))
        stepped.state.dirty.clear()
        if stepped.refused:
            break
        stepped.until = stepped.until if number is None else number
    return stepped


def _rows(
    journal: SqliteJournal,
    stepped: SteppedPast,
    until: int | None,
    then: Iterable[tuple[float, e.Event]],
) -> Iterator[tuple[int | None, float, e.Event]]:
    for row in rows_as_judged(journal, stepped.until):
        if until is not None and row.number > until:
            break
        yield row.number, row.at, row.event
    for at, event in then:
        yield None, at, event
