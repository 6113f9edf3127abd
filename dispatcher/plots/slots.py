"""Busy slots over time, and why no more of them were."""

from __future__ import annotations

import time
from typing import Final

from dispatcher import queries
from dispatcher.errors import InternalError
from dispatcher.folders.names import STORE_NAME
from dispatcher.folders.status import is_led
from dispatcher.plots.shapes import IdleShare, ReasonSpan, Slots
from dispatcher.queries import ExperimentReader
from dispatcher.store.replay.slots_then import MOST_ROWS, SlotsThen, slots_then

#: Seconds of a step, at least, and steps.
LEAST_STEP_S: Final = 1.0
STEPS: Final = 3_600

#: Characters of a sentence, and spans with one: the newest.
_MOST_TEXT: Final = 300
_MOST_SPANS: Final = 500


def slots(reader: ExperimentReader, *, last: float = 3_600.0) -> Slots:
    """Show how many slots were busy.

    Args:
        reader: the experiment.
        last: seconds up to its end, or up to now while a head leads it.
    """
    with reader.moment():
        cursor = queries.cursor_now(reader)
        newest = reader.row("SELECT max(at) FROM journal")
    until = float(newest[0] or 0.0) if newest is not None else 0.0
    if is_led(reader.folder):
        until = max(until, time.time())
    each_s = max(LEAST_STEP_S, last / STEPS)
    notes: list[str] = []
    history: SlotsThen | None = None
    try:
        history = slots_then(reader.folder / STORE_NAME, until - last, until, each_s)
    except InternalError as error:
        notes.append(f"the past is not shown: {error.message}")
    else:
        if history is None:
            notes.append(f"a journal of more than {MOST_ROWS:,} rows is not gone through for this")
        elif not history.whole:
            notes.append("what was before is compacted: a journal keeps it only for so long")
    if history is None:
        history = SlotsThen(until, each_s, [], 0.0, {}, whole=True)
    in_all = history.busy_s + sum(history.idle_s.values())
    shares = sorted(history.idle_s.items(), key=lambda one: -one[1])
    return Slots(
        reader.id, reader.name, cursor, notes,
        begin=history.begin,
        until=until,
        each_s=each_s,
        busy=[round(one.busy, 2) for one in history.steps],
        slots=[round(one.slots, 2) for one in history.steps],
        busy_share=history.busy_s / in_all if in_all > 0 else None,
        idle=[IdleShare(cause, seconds / in_all) for cause, seconds in shares if seconds > 0],
        reasons=spans_of(history, until)[-_MOST_SPANS:],
    )  # fmt: skip


def spans_of(history: SlotsThen, until: float) -> list[ReasonSpan]:
    """Return the times in which one cause stood in the way, in their order.

    Args:
        history: steps.
        until: where the last one ends.
    """
    spans: list[ReasonSpan] = []
    for place, step in enumerate(history.steps):
        begin = history.begin + place * history.each_s
        end = min(until, begin + history.each_s)
        if spans and spans[-1].cause == step.cause:
            before = spans[-1]
            spans[-1] = ReasonSpan(before.begin, end, before.cause, before.text)
        else:
            spans.append(ReasonSpan(begin, end, step.cause, step.text[:_MOST_TEXT]))
    return spans
