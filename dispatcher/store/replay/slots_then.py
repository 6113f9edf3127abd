"""How many slots were busy, and why not more were: the states of a search, made again from its
journal and asked one after the other. ``core.why`` answers for them as it does for a running head.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final, NamedTuple

from dispatcher.core import State, apply
from dispatcher.core import events as e
from dispatcher.core.model import OVER
from dispatcher.core.why import Cause, why
from dispatcher.store.compaction import Compaction
from dispatcher.store.copying import opened_to_read
from dispatcher.store.early_stops import rows_as_judged
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.history import first_state, state_of

#: Rows beyond which nobody waits for the answer; some seconds.
MOST_ROWS: Final = 200_000

#: Steps at most.
MOST_STEPS: Final = 4_000

#: The cause of what no state can say: no head was there to write into the journal.
NO_HEAD: Final = "NO_HEAD"

#: Seconds without a row before a head begins, from which on nobody led.
_LED_S: Final = 5.0

#: From this share of busy slots on a step counts as one in which nothing was in the way.
_BUSY: Final = 0.95

_BUSY_CAUSE: Final = (Cause.ALL_SLOTS_BUSY.name, "all slots were busy")


class SlotStep(NamedTuple):
    """A short time: busy slots and slots, their mean, and the cause and sentence of why no more."""

    busy: float
    slots: float
    cause: str
    text: str


class SlotsThen(NamedTuple):
    """Steps of ``each_s`` seconds from ``begin`` on, and the seconds in which slots were busy, and
    idle by cause, while it was not over. ``whole``: nothing before was compacted."""

    begin: float
    each_s: float
    steps: list[SlotStep]
    busy_s: float
    idle_s: dict[str, float]
    whole: bool


class _Recorder:
    """Adds up what lasts, by steps."""

    def __init__(self, begin: float, until: float, each_s: float) -> None:
        many = min(MOST_STEPS, max(1, math.ceil((until - begin) / each_s)))
        self.begin = begin
        self.until = until
        self.each_s = each_s
        self.busy = [0.0] * many
        self.slots = [0.0] * many
        self.lasted = [0.0] * many
        self.causes: list[tuple[str, str]] = [_BUSY_CAUSE] * many
        self._longest = [0.0] * many  # of the times in which a slot was idle
        self.busy_s = 0.0
        self.idle_s: dict[str, float] = {}

    def lasts(self, state: State, start: float, end: float, *, led: bool) -> None:
        """Take in a state that lasted from one moment to another."""
        start, end = max(start, self.begin), min(end, self.until)
        while start < end:
            place = min(len(self.busy) - 1, int((start - self.begin) / self.each_s))
            edge = self.begin + (place + 1) * self.each_s
            stop = end if place == len(self.busy) - 1 or edge <= start else min(end, edge)
            self._add(place, state, start, stop - start, led=led)
            start = stop

    def _add(self, place: int, state: State, at: float, seconds: float, *, led: bool) -> None:
        slots = state.settings.slots
        over = state.phase in OVER
        busy = 0 if over else min(slots, len(state.running))
        self.busy[place] += busy * seconds
        self.slots[place] += slots * seconds
        self.lasted[place] += seconds
        if busy < slots and seconds > self._longest[place]:
            self._longest[place] = seconds
            if led or over:
                found = why(state, at)
                self.causes[place] = (found.cause.name, found.text)
            else:
                self.causes[place] = (NO_HEAD, "no head led it")
        if over:
            return
        self.busy_s += busy * seconds
        if busy < slots:
            cause = self.causes[place][0]
            self.idle_s[cause] = self.idle_s.get(cause, 0.0) + (slots - busy) * seconds

    def steps(self) -> list[SlotStep]:
        """Return all steps."""
        found = []
        for busy, slots, lasted, cause in zip(
            self.busy, self.slots, self.lasted, self.causes, strict=True
        ):
            full = slots > 0 and busy >= _BUSY * slots
            per = lasted or 1.0
            found.append(SlotStep(busy / per, slots / per, *(_BUSY_CAUSE if full else cause)))
        return found


def slots_then(
    path: Path, begin: float, until: float, each_s: float, most_rows: int = MOST_ROWS
) -> SlotsThen | None:
    """Return how slots were used; None: the journal is too long to be replayed for this.

    Args:
        path: of the store.
        begin: from when on (seconds since the epoch); later, if what was before is compacted, or
            there was nothing.
        until: until when.
        each_s: seconds of a step.
        most_rows: rows that are replayed at most.

    Raises:
        StoreError: the journal cannot be read.
        InternalError: it cannot be replayed.
    """
    with opened_to_read(path) as journal:
        base = Compaction(journal).base()
        first = 0 if base is None else base.number
        if journal.last - first > most_rows:
            return None
        state = None if base is None else state_of(base)
        at = known = None if base is None else _at_of(journal)
        recorder = None if at is None else _Recorder(max(begin, at), until, each_s)
        for row in rows_as_judged(journal, first):
            if state is None or at is None or recorder is None:
                state, at = first_state(row.event), row.at
                recorder = _Recorder(max(begin, at), until, each_s)
            led = not (isinstance(row.event, e.HeadStarted) and row.at - at > _LED_S)
            recorder.lasts(state, at, row.at, led=led)
            apply(state, row.event, row.at)
            state.dirty.clear()
            at = max(at, row.at)
        if state is None or at is None or recorder is None:
            return SlotsThen(until, each_s, [], 0.0, {}, whole=True)
        recorder.lasts(state, at, until, led=True)
    whole = known is None or known <= begin
    return SlotsThen(
        recorder.begin, each_s, recorder.steps(), recorder.busy_s, recorder.idle_s, whole
    )


def _at_of(journal: SqliteJournal) -> float:
    """Return when the base's row was written."""
    (row,) = journal.query("SELECT max(at) FROM bases")
    return float(row[0])
