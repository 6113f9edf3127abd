"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dispatcher.terminal.safe_text import made_safe


def _complete_experiment(incomplete: str) -> list[str]:
    """Return ids and names with that prefix; none, rather than an error, while the user types."""
    from dispatcher.experiments.find import completions

    return completions(incomplete)


_EXPERIMENT_HELP = (
    "Id, the beginning of one, a name or a folder. Default: the one that runs; commands that "
    "change nothing take the newest if none runs."
)

Experiment = Annotated[
    str | None,
    typer.Argument(
        metavar="EXPERIMENT",
        help=_EXPERIMENT_HELP,
        autocompletion=_complete_experiment,
        show_default=False,
    ),
]

OfExperiment = Annotated[
    str | None,
    typer.Option(
        "--experiment",
        "-e",
        metavar="EXPERIMENT",
        help=_EXPERIMENT_HELP,
        autocompletion=_complete_experiment,
    ),
]

Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Look for experiments in this folder only.",
        show_default=False,
    ),
]

ExperimentFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The experiment file (YAML).", show_default=False)
]

Trial = Annotated[int, typer.Argument(metavar="TRIAL", help="The trial's number.", min=0)]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

OutFile = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="File to write; stdout if not given."),
]


def confirmed(question: str, yes: bool) -> None:
    """Return only if the user agrees; without a terminal, only with ``--yes``."""
    if yes:
        return
    if not os.isatty(0):
        raise typer.BadParameter(made_safe(f"{question} Say --yes to agree"), param_hint="'--yes'")
    typer.confirm(made_safe(question), abort=True, err=True)
