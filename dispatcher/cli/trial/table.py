"""Tables of trials: which columns they have, and how many rows are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column

if TYPE_CHECKING:
    from dispatcher.queries import TrialSummary

#: Rows of a table unless the user says how many; as many or more go through a pager.
MOST_ROWS: Final = 10_000

#: The columns that are shown if none are asked for.
COLUMNS: Final = (
    Column("trial", right=True),
    Column("state"),
    Column("result", right=True, style="bold"),
    Column("parent", right=True),
    Column("took", right=True),
    Column("parameters", shrink=True),
)

#: Columns with points in time, which people read as such.
_TIMES: Final = frozenset({"since", "asked_at", "proposed_at", "started_at", "ended_at"})

Where = Annotated[
    str,
    typer.Option(
        metavar="CONDITION",
        help="Only trials for which this holds, such as 'lr<0.01 and optimizer=adam and "
        "outcome!=failed'.",
        show_default=False,
    ),
]

Columns = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        help="Show these columns, such as 'trial,result,lr,metrics.loss': those of the table, "
        "parameters, and all else that a CONDITION can name.",
        show_default=False,
    ),
]


def check_limit(limit: int | None) -> int | None:
    """Refuse a negative number of rows. Raises ``typer.BadParameter``."""
    if limit is not None and limit < 0:
        raise typer.BadParameter(f"{limit} is no number of trials: write how many, or 0 for all")
    return limit


def table_of(
    names: str,
    trials: Sequence[TrialSummary],
    cells: Sequence[Sequence[Any]],
    usual: Sequence[Column] = COLUMNS,
) -> tuple[list[Column], list[list[str]]]:
    """Return columns and rows of a table.

    Args:
        names: columns as a user typed them; empty: the usual ones.
        trials: a row each.
        cells: of the answer, for the names.
        usual: the columns that are shown if none are asked for.
    """
    from dispatcher.queries import parse_names

    known = {column.title: column for column in COLUMNS}
    if not names:
        shown = [_CELLS[column.title] for column in usual]
        return [*usual], [[cell(one) for cell in shown] for one in trials]
    typed = list(parse_names(names))
    columns = [known.get(name) or _column(name, at, cells) for at, name in enumerate(typed)]
    rows = [
        [
            _CELLS[name](one) if name in known else _shown(name, beside[at])
            for at, name in enumerate(typed)
        ]
        for one, beside in zip(trials, cells, strict=True)
    ]
    return columns, rows


def _state(one: TrialSummary) -> str:
    return (one.outcome or one.state) + (f" ({one.attempt} attempts)" if one.attempt > 1 else "")


#: What a trial has in each of :data:`COLUMNS`.
_CELLS: Final[dict[str, Callable[[TrialSummary], str]]] = {
    "trial": lambda one: str(one.id),
    "state": _state,
    "result": lambda one: formatting.number(one.value),
    "parent": lambda one: formatting.NOTHING if one.parent is None else str(one.parent),
    # Added up as attempts end: there is none while the first attempt runs.
    "took": lambda one: formatting.duration(one.wall_s or None),
    "parameters": formatting.parameters_of,
}


def _column(name: str, at: int, cells: Sequence[Sequence[Any]]) -> Column:
    numbers = all(isinstance(row[at], int | float | None) for row in cells)
    # A number that is cut is another number: it is shown whole, or not at all.
    return Column(name, right=numbers and name not in _TIMES, shrink=not numbers)


def _shown(name: str, value: Any) -> str:
    if value is None:
        return formatting.NOTHING
    return formatting.moment(value) if name in _TIMES else formatting.value(value)
