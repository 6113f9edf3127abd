"""Every move of a trial that there is, by what may cause it. ``moves`` refuses all others.

Most follow from an event, and are columns of its row in the catalogue. The others are made by joint
rules, after an event of any kind.
"""

from collections.abc import Mapping
from typing import Final

from dispatcher.core.events import CATALOGUE, EventRow
from dispatcher.core.events.row import Arrow, arrows
from dispatcher.core.model import Rule, Trigger
from dispatcher.core.model import TrialState as S

RULES: Final[Mapping[Rule, frozenset[Arrow]]] = {
    Rule.ASKED: arrows(([None], [S.OPEN])),
    Rule.ASKED_AGAIN: arrows(([S.PARKED], [S.OPEN])),
    Rule.BACKOFF_OVER: arrows(([S.BACKOFF], [S.QUEUED])),
    Rule.PLACED: arrows(([S.QUEUED], [S.RUNNING])),
    Rule.NEVER_FITS: arrows(([S.QUEUED], [S.DELIVERING])),
    Rule.TUNER_DONE: arrows(([S.PARKED], [S.ENDED])),
    Rule.GATE_OPENED: arrows(([S.BLOCKED], [S.OPEN]), ([S.HELD], [S.QUEUED, S.DELIVERING])),
    Rule.VERSION_PUBLISHED: arrows(([S.BLOCKED], [S.OPEN])),
    Rule.HOST_GONE: arrows(([S.BLOCKED], [S.OPEN])),
}


def _arrows_of(row: EventRow) -> frozenset[Arrow]:
    own = {(before, after) for before, to in row.legal.items() for after in to}
    late = {(S.ENDED, S.DELIVERING)} if row.after_kill else set()
    return frozenset(own | late | row.others)


_by_rule: list[tuple[Trigger, frozenset[Arrow]]] = list(RULES.items())
_by_event: list[tuple[Trigger, frozenset[Arrow]]] = [
    (kind, _arrows_of(row)) for kind, row in CATALOGUE.items()
]

ARROWS: Final[Mapping[Trigger, frozenset[Arrow]]] = dict([*_by_rule, *_by_event])


def name_of(trigger: Trigger) -> str:
    """The trigger as a person reads it."""
    return trigger.value if isinstance(trigger, Rule) else trigger.__name__
