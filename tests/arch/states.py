"""The state diagram in ``docs/states.md``, drawn from the core's catalogue of events.

``python -m tests.arch.states`` writes it; ``test_contracts`` compares.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from dispatcher.core import events as e
from dispatcher.core.model import TrialState

PAGE = Path(__file__).parents[2] / "docs" / "states.md"

_BEGINNING = """\
# States of a trial

Drawn from the catalogue in `dispatcher/core/events/__init__.py` by `python -m tests.arch.states`.
An arrow bears all events that may take a trial there.

```mermaid
stateDiagram-v2"""


def page() -> str:
    """How events move a trial, and all else that the catalogue holds, as a diagram and tables."""
    lines = [_BEGINNING, *_diagram(), "```", "", "## Events that name a trial", ""]
    lines += ["| event | has its effect in | may take it to | is late in |", "|---|---|---|---|"]
    lines += [_of_a_trial(kind, row) for kind, row in e.CATALOGUE.items() if row.legal]
    lines += ["", "## All events", ""]
    lines += ["| event | may come from | waits for the disk | has a row |", "|---|---|---|---|"]
    lines += [_of_any(kind, row) for kind, row in e.CATALOGUE.items()]
    return "\n".join(lines) + "\n"


def _diagram() -> Iterable[str]:
    labels = defaultdict(list)
    for kind, row in e.CATALOGUE.items():
        for before, targets in row.legal.items():
            for after in targets:
                labels[before, after].append(kind.__name__)
    order = list(TrialState)
    for before, after in sorted(labels, key=lambda one: [order.index(state) for state in one]):
        yield f"    {before.name} --> {after.name}: {', '.join(labels[before, after])}"


def _of_a_trial(kind: type, row: e.EventRow) -> str:
    anywhere = frozenset[TrialState]().union(*row.legal.values())
    cells = (_names(row.legal), _names(anywhere), _names(row.late))
    return f"| {kind.__name__} | {' | '.join(cells)} |"


def _of_any(kind: type, row: e.EventRow) -> str:
    waits = "-" if not row.journalled else _yes(row.durable)
    origins = ", ".join(origin for origin in e.Origin if origin in row.by)
    return f"| {kind.__name__} | {origins} | {waits} | {_yes(row.journalled)} |"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _names(states: Iterable[TrialState]) -> str:
    return ", ".join(state.name for state in TrialState if state in set(states)) or "-"


if __name__ == "__main__":
    PAGE.write_text(page())
