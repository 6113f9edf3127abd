"""The best trials, as ``best`` and the end of ``run`` show them."""

from __future__ import annotations

from collections.abc import Sequence

from dispatcher import queries
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, print_table

_COLUMNS = (
    Column("", right=True, style="dim"),
    Column("result", right=True, style="bold"),
    Column("trial", right=True),
    Column("parent", right=True),
    Column("took", right=True),
    Column("parameters", shrink=True),
)


def print_leaders(best: Sequence[queries.TrialSummary]) -> None:
    """Print a table of trials, the best first."""
    print_table(
        _COLUMNS,
        [
            (
                str(place),
                formatting.number(one.value),
                str(one.id),
                formatting.NOTHING if one.parent is None else str(one.parent),
                formatting.duration(one.wall_s),
                formatting.parameters_of(one),
            )
            for place, one in enumerate(best, start=1)
        ],
    )


def print_front(best: Sequence[queries.TrialSummary], objectives: Sequence[str]) -> None:
    """Print a table of trials, with a column for each of several objectives. The number is first:
    it stays on narrow terminals."""
    columns = [Column(name, right=True, style="bold") for name in objectives]
    print_table(
        [_COLUMNS[2], *columns, *_COLUMNS[3:]],
        [
            (
                str(one.id),
                *(formatting.number(queries.objective_of(one, name)) for name in objectives),
                formatting.NOTHING if one.parent is None else str(one.parent),
                formatting.duration(one.wall_s),
                formatting.parameters_of(one),
            )
            for one in best
        ],
    )
