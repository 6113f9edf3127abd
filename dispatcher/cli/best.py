"""``bequeath best``: the best trials and what they were made of."""

from __future__ import annotations

from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, context_for
from dispatcher.cli.trial.table import Columns, Where, table_of
from dispatcher.terminal.console import note, print_json, print_table


def best(
    experiment: Experiment = None,
    many: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            "--number",
            metavar="NUMBER",
            min=1,
            help="How many; if not given 5, and of several objectives the whole front.",
        ),
    ] = None,
    where: Where = "",
    columns: Columns = "",
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Show the best trials with their parameters, by the results that the tuner received.

    Of several objectives: the trials within their bounds that no other one beats in all (the
    Pareto front).
    With `--where`, the best of those for which the condition holds.
    """
    from dispatcher.operations.arguments import ListBest
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import BEST
    from dispatcher.terminal.leaderboard import print_front, print_leaders

    wanted = ListBest(limit=many, where=where, columns=columns)
    answer = perform(BEST, context_for("best", folder), wanted, experiment=experiment)
    if as_json:
        print_json(answer)
    elif answer.trials and columns:
        print_table(*table_of(columns, answer.trials, answer.cells))
    elif answer.trials and answer.objectives:
        print_front(answer.trials, list(answer.objectives))
    elif answer.trials:
        print_leaders(answer.trials)
    elif where:
        note(f"no such trial of {answer.experiment} has a result")
    else:
        note(f"no trial of {answer.experiment} has a result yet")
