"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dispatcher.safe_text import made_safe

if TYPE_CHECKING:
    from dispatcher.experiments.handle import ExperimentHandle
    from dispatcher.operations.operation import Context


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

NamedExperiment = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        help="Id, the beginning of one, a name or a folder.",
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

Attempt = Annotated[
    int | None,
    typer.Option(
        "--attempt", metavar="NUMBER", min=1, help="The newest if not given.", show_default=False
    ),
]

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


def context_for(
    command: str,
    folder: Path | None = None,
    *,
    yes: bool = False,
    part: Callable[[Any], None] = lambda _: None,
) -> Context:
    """Make the context in which a command carries an operation out.

    Args:
        command: its name, for records.
        folder: look for experiments below this folder only.
        yes: agree to its questions without asking the user.
        part: gets parts of the answer as they come.
    """
    from dispatcher.operations.operation import Context
    from dispatcher.terminal.console import note

    def confirm(question: str) -> None:
        confirmed(question, yes)

    return Context(who=f"bequeath {command}", base=folder, confirm=confirm, note=note, part=part)


def find_handle(
    experiment: str | None,
    folder: Path | None = None,
    purpose: Literal["read", "use", "change", "running", "resume", "damaged"] = "read",
) -> ExperimentHandle:
    """Find the experiment that a command means. What is imported only here is not for ``--help``.

    Args:
        experiment: id, its beginning, name or folder; None if nothing was typed.
        folder: look below this folder only.
        purpose: a value of :class:`dispatcher.experiments.find.Purpose`.

    Raises:
        DispatcherError: as of :func:`dispatcher.experiments.find.find`.
    """
    from dispatcher.experiments.find import Purpose
    from dispatcher.experiments.handle import ExperimentHandle

    return ExperimentHandle.find(experiment, folder, Purpose(purpose))
