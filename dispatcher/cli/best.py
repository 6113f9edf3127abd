"""``bequeath best``: the best trials and what they were made of."""

from __future__ import annotations

from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.cli.console import note, print_json


def best(
    experiment: Experiment = None,
    many: Annotated[
        int, typer.Option("-n", "--number", metavar="NUMBER", min=1, help="How many.")
    ] = 5,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Show the best trials with their parameters, by what the tuner was told."""
    from dispatcher import queries
    from dispatcher.cli.leaderboard import print_leaders
    from dispatcher.finding.find import find_one

    found = find_one(experiment, folder, others=True)
    with queries.ExperimentReader.open(found.folder) as reader:
        leaders = queries.best(reader, many)
    if as_json:
        document = {"experiment": found.id, "mode": found.mode}
        print_json({**document, "trials": [one.to_json() for one in leaders]})
    elif leaders:
        print_leaders(leaders)
    else:
        note(f"no trial of {found.id} has a result yet")
