"""The state diagram in ``docs/states.md``, drawn from the core's catalogue of events.

``python -m tests.arch.states`` writes it; ``test_contracts`` compares.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from dispatcher.core import events as e
from dispatcher.core.arrows import ARROWS, RULES, name_of
from dispatcher.core.events.row import Arrow
from dispatcher.core.model import Rule, TrialState

PAGE = Path(__file__).parents[2] / "docs" / "states.md"

_BEGINNING = """\
# States of a trial

Drawn from the catalogue in `dispatcher/core/events/__init__.py` and from `core/arrows.py` by
`python -m tests.arch.states`. An arrow bears all that may take a trial there: events, and joint
rules (in lower case) that follow from the state as a whole, after any event. The core refuses
every other move.

```mermaid
stateDiagram-v2"""


def page() -> str:
    """How events move a trial, and all else that the catalogue holds, as a diagram and tables."""
    lines = [_BEGINNING, *_diagram(), "```", "", "## Events that name a trial", ""]
    lines += ["| event | has its effect in | may take it to | is late in |", "|---|---|---|---|"]
    lines += [_of_a_trial(kind, row) for kind, row in e.CATALOGUE.items() if row.legal]
    lines += ["", "## Joint rules", "", "| rule | takes a trial from | to |", "|---|---|---|"]
    lines += [_of_rule(rule, arrows) for rule, arrows in RULES.items()]
    lines += ["", "## All events", ""]
    lines += ["| event | may come from | waits for the disk | has a row |", "|---|---|---|---|"]
    lines += [_of_any(kind, row) for kind, row in e.CATALOGUE.items()]
    return "\n".join(lines) + "\n"


def _diagram() -> Iterable[str]:
    labels = defaultdict(list)
    for trigger, arrows in ARROWS.items():
        for arrow in arrows:
            labels[arrow].append(name_of(trigger))
    order = [None, *TrialState]
    for before, after in sorted(labels, key=lambda arrow: [order.index(state) for state in arrow]):
        origin = "[*]" if before is None else before.name
        yield f"    {origin} --> {after.name}: {', '.join(sorted(labels[before, after]))}"


def _of_a_trial(kind: type, row: e.EventRow) -> str:
    anywhere = frozenset[TrialState]().union(*row.legal.values())
    cells = (_names(row.legal), _names(anywhere), _names(row.late))
    return f"| {kind.__name__} | {' | '.join(cells)} |"


def _of_rule(rule: Rule, arrows: Iterable[Arrow]) -> str:
    before = {"a new one" if state is None else state.name for state, _ in arrows}
    return f"| {rule} | {', '.join(sorted(before))} | {_names([to for _, to in arrows])} |"


def _of_any(kind: type, row: e.EventRow) -> str:
    waits = "-" if not row.journalled else _yes(row.durable)
    origins = ", ".join(origin for origin in e.Origin if origin in row.by)
    return f"| {kind.__name__} | {origins} | {waits} | {_yes(row.journalled)} |"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _names(states: Iterable[TrialState]) -> str:
    others = [state.name for state in TrialState if state not in set(states)]
    if len(others) == 1:
        return f"all but {others[0]}"
    return ", ".join(state.name for state in TrialState if state in set(states)) or "-"


if __name__ == "__main__":
    PAGE.write_text(page())
