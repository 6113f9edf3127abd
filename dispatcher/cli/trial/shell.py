"""``bequeath trial shell``: a shell, or a command, where a trial runs or ran."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from dispatcher.cli.arguments import Folder, OfExperiment, Trial
from dispatcher.terminal.console import note
from dispatcher.terminal.safe_text import safe_text


def shell(
    trial: Trial,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Command to run, after --; a shell if not given.",
            show_default=False,
        ),
    ] = None,
    experiment: OfExperiment = None,
    attempt: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help="The newest if not given.", show_default=False),
    ] = None,
    folder: Folder = None,
) -> None:
    """Open a shell in a trial's working directory, on the machine where it runs or ran.

    It has the trial's environment, its GPUs and its Python included, but not the secret by which
    the trial reports. With a COMMAND that is run, with stdin passed on; its exit code is ours.
    """
    from dispatcher.attempt_files.ways import files_of
    from dispatcher.experiments.handle import ExperimentHandle

    with ExperimentHandle.find(experiment, folder).attempts(trial) as located:
        one = located.attempt(attempt)
        files = files_of(located.folder, one, for_shell=True)
        ended = located.over(one.number)
        where = located.experiment.id
    terminal = os.isatty(0) and os.isatty(1)
    if terminal and not command:
        past = f" (it is {located.state})" if ended else ""
        note(f"{where}: attempt {one.name} on {safe_text(files.place)}{past}; 'exit' leads back")
    try:
        code = files.shell(command or [], terminal=terminal)
    finally:
        files.close()
    raise typer.Exit(code)
