"""``bequeath leaderboard``: the best trials of all experiments, beside each other."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Folder, Json, context_for
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, note, print_json, print_table, say
from dispatcher.terminal.notes import marks

if TYPE_CHECKING:
    from dispatcher.queries import Board
    from dispatcher.queries.boards import NamedRuns, PlacedExperiment


class Group(StrEnum):
    """The thing that experiments of one board have in common."""

    DATASET = "dataset"
    TUNER = "tuner"
    TAG = "tag"
    NAME = "name"
    NONE = "none"


_GROUPS = ", ".join(Group)


def leaderboard(
    group: Annotated[
        Group,
        typer.Option(
            "--group", metavar="WHAT", help=f"Put on one board what has this in common: {_GROUPS}."
        ),
    ] = Group.DATASET,
    dataset: Annotated[
        str, typer.Option("--dataset", metavar="NAME", help="Only of this data set.")
    ] = "",
    tuner: Annotated[str, typer.Option("--tuner", metavar="NAME", help="Only of this tuner.")] = "",
    tag: Annotated[
        str, typer.Option("--tag", metavar="TAG", help="Only those with this tag.")
    ] = "",
    name: Annotated[
        str, typer.Option("--name", metavar="TEXT", help="Only those with this in name or id.")
    ] = "",
    starred: Annotated[bool, typer.Option("--starred", help="Only those with a star.")] = False,
    everywhere: Annotated[
        bool, typer.Option("--all", help="Include those outside of BEQUEATH_HOME, if that is set.")
    ] = False,
    many: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="NUMBER", min=1, help="Experiments of each board, at most."
        ),
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Compare the best trials of all experiments, board by board, the best first.

    Where several have one name, as seeds of one search do, a second table has their medians. The
    data set of an experiment is the key `dataset` of its file, or a tag `dataset:NAME`.
    """
    from dispatcher.operations.arguments import ArrangeBoard
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import LEADERBOARD

    wanted = ArrangeBoard(
        group=group.value,
        dataset=dataset,
        tuner=tuner,
        tag=tag,
        name=name,
        starred=starred,
        everywhere=everywhere,
        limit=many,
    )
    answer = perform(LEADERBOARD, context_for("leaderboard", folder), wanted)
    if as_json:
        print_json(answer)
    elif not answer.boards:
        note("no experiment that is meant has a result yet")
    else:
        for board in answer.boards:
            _print(board, group)


def _print(board: Board, group: Group) -> None:
    if group is not Group.NONE:
        say(f"{group.value} {board.group or 'not named'} ({board.mode.value})")
    print_table(COLUMNS, [_row(one) for one in board.experiments])
    if any(one.runs > 1 for one in board.names):
        print_table(NAMES, [_name(one) for one in board.names])


COLUMNS = (
    Column("#", right=True),
    Column("value", right=True, style="bold"),
    Column("trial", right=True),
    Column("experiment"),
    Column("data set", shrink=True),
    Column("tuner", shrink=True),
    Column("seed", right=True),
    Column("trials", right=True),
    Column("CPU", right=True),
    Column("status"),
    Column("tags", shrink=True),
)

NAMES = (
    Column("name", shrink=True),
    Column("tuner", shrink=True),
    Column("runs", right=True),
    Column("median", right=True, style="bold"),
    Column("best", right=True),
    Column("worst", right=True),
    Column("CPU", right=True),
)


def _row(placed: PlacedExperiment) -> tuple[str, ...]:
    one = placed.experiment
    return (
        str(placed.place),
        formatting.number(one.best_value),
        str(one.best_trial),
        one.id,
        one.dataset,
        one.tuner,
        "" if one.seed is None else str(one.seed),
        str(one.trials),
        formatting.duration(one.cpu_s),
        one.status.value,
        marks(one.tags, starred=one.starred),
    )


def _name(one: NamedRuns) -> tuple[str, ...]:
    return (
        one.name,
        one.tuner,
        str(one.runs),
        formatting.number(one.median),
        formatting.number(one.best),
        formatting.number(one.worst),
        formatting.duration(one.cpu_s),
    )
