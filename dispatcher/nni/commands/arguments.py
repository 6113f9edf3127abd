"""Arguments and options under NNI's names that several of its commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatcher.errors import UserError

TrialIds = Annotated[
    str | None,
    typer.Option("--trial_id", "-T", metavar="TRIAL", help="The trial's number, which is its id."),
]

Needed = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Id of the experiment, the beginning of one, a name or a folder.",
        show_default=False,
    ),
]

Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        "-p",
        metavar="PORT",
        min=1,
        max=65535,
        help="Serve NNI's REST at this port of this machine, for you only, until the experiment is "
        "stopped. Without it nothing listens.",
        show_default=False,
    ),
]

UrlPrefix = Annotated[
    str | None,
    typer.Option(
        "--url_prefix",
        "-u",
        metavar="PREFIX",
        help="The path below which NNI's REST answers.",
        show_default=False,
    ),
]

Debug = Annotated[
    bool,
    typer.Option("--debug", "-d", help="As `debug: true` and `logLevel: debug` in the file."),
]

Foreground = Annotated[
    bool, typer.Option("--foreground", "-f", help="Stay in this terminal, as `bequeath run` does.")
]

ExperimentDir = Annotated[
    Path | None,
    typer.Option(
        "--experiment_dir",
        "-e",
        metavar="DIR",
        help="The experiment's own folder, or the one that holds it.",
        show_default=False,
    ),
]

File = Annotated[Path, typer.Option("--filename", "-f", metavar="FILE", help="The file.")]


def trial_number(text: str) -> int:
    """Return a trial's id as a number.

    Raises:
        UserError: the text is no number.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    raise UserError(
        f"{text!r} is no trial's id",
        hint="ids of trials are numbers here: 'bequeath nni trial ls' shows them",
        where="--trial_id",
    )


def placed(experiment: str, folder: Path | None) -> str:
    """Return the argument that finds an experiment in a folder of the user's.

    Raises:
        UserError: the folder holds no such experiment.
    """
    if folder is None:
        return experiment
    whole = folder.expanduser().resolve()
    for place in (whole / experiment, whole):
        if place.name == experiment and place.is_dir():
            return str(place)
    raise UserError(
        f"holds no experiment {experiment!r}",
        hint="name the experiment's own folder, whose name is its id, or the one above it",
        where=f"--experiment_dir {folder}",
    )
