"""``bequeath nni update``: what may be changed while an experiment runs."""

from __future__ import annotations

from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.nni.commands.arguments import File

UPDATE: Table = {
    "searchspace": CommandEntry(
        "nni.commands.update:searchspace", "The search space, from a file."
    ),
    "concurrency": CommandEntry("nni.commands.update:concurrency", "How many trials run at once."),
    "duration": CommandEntry("nni.commands.update:duration", "How long new trials are begun."),
    "trialnum": CommandEntry("nni.commands.update:trialnum", "How many trials there are at most."),
}

Value = Annotated[str, typer.Option("--value", "-v", metavar="VALUE", help="As in the file.")]


def searchspace(file: File, experiment: Experiment = None) -> None:
    """Change the search space, as `bequeath experiment update searchSpace @FILE` does."""
    _change("searchSpace", f"@{file}", experiment)


def concurrency(value: Value, experiment: Experiment = None) -> None:
    """Change how many trials run at once (`trialConcurrency`)."""
    _change("trialConcurrency", value, experiment)


def duration(value: Value, experiment: Experiment = None) -> None:
    """Change for how long new trials are begun (`maxExperimentDuration`): `2h`, or seconds."""
    _change("maxExperimentDuration", value, experiment)


def trialnum(value: Value, experiment: Experiment = None) -> None:
    """Change how many trials there are at most (`maxTrialNumber`)."""
    _change("maxTrialNumber", value, experiment)


def _change(key: str, value: str, experiment: str | None) -> None:
    from dispatcher.cli.experiment.verbs import update

    update(key, value, experiment)
