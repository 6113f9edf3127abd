"""``bequeath nni trial``: listing trials as NNI does, and ending them."""

from __future__ import annotations

from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.nni.commands.arguments import trial_number

TRIAL: Table = {
    "ls": CommandEntry("nni.commands.trial:ls", "List trials as JSON, in NNI's layout."),
    "kill": CommandEntry("nni.commands.trial:kill", "End a running or waiting trial."),
    "codegen": CommandEntry(
        "nni.commands.refused:trial_codegen", "Refused: annotated code is not read."
    ),
}


def ls(
    experiment: Experiment = None,
    head: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="Show only this many trials, those with the highest results.",
        ),
    ] = None,
    tail: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="Show only this many trials, those with the lowest results.",
        ),
    ] = None,
) -> None:
    """List trials as JSON, in NNI's layout; `bequeath trial ls` is made for people.

    Highest and lowest are meant as numbers, whatever the tuner takes for better, as in NNI.
    """
    from dispatcher import queries
    from dispatcher.experiments.find import find_one
    from dispatcher.nni.rows import is_job, job
    from dispatcher.terminal.console import print_json

    if head is not None and tail is not None:
        raise typer.BadParameter("--head and --tail exclude each other", param_hint="'--tail'")
    located = find_one(experiment, None)
    with queries.ExperimentReader.open(located.folder) as reader:
        trials = [one for one in queries.list_trials(reader) if is_job(one)]
    if head is not None or tail is not None:
        valued = [one for one in trials if one.over and one.value is not None]
        valued.sort(key=lambda one: one.value or 0.0, reverse=head is not None)
        trials = valued[: head or tail]
    print_json([job(one, located.folder) for one in trials])


def kill(
    trial: Annotated[
        str, typer.Option("--trial_id", "-T", metavar="TRIAL", help="The trial's number.")
    ],
    experiment: Experiment = None,
) -> None:
    """End a trial, running or not yet started, as `bequeath trial kill` does."""
    from dispatcher.cli.trial.change import kill as ours

    ours([trial_number(trial)], experiment)
