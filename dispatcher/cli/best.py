"""``bequeath best``: the best trials and what they were made of."""

from __future__ import annotations

from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.terminal.console import note, print_json

#: Trials that are shown without ``--number``.
_FEW = 5


def best(
    experiment: Experiment = None,
    many: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--number",
            metavar="NUMBER",
            min=1,
            help="How many; if not given 5, and of several objectives the whole front.",
        ),
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Show the best trials with their parameters, by the results that the tuner received.

    Of several objectives: the trials that no other one beats in all of them (the Pareto front).
    """
    from dispatcher.experiments.handle import ExperimentHandle
    from dispatcher.terminal.leaderboard import print_front, print_leaders

    handle = ExperimentHandle.find(experiment, folder)
    leaders, objectives = handle.leaders(many, few=_FEW)
    if as_json:
        document = {"experiment": handle.id, "mode": handle.mode, "objectives": objectives}
        print_json({**document, "trials": [one.to_json() for one in leaders]})
    elif leaders and objectives:
        print_front(leaders, list(objectives))
    elif leaders:
        print_leaders(leaders)
    else:
        note(f"no trial of {handle.id} has a result yet")
