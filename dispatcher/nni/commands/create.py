"""``bequeath nni create``, ``resume`` and ``view``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.errors import UserError
from dispatcher.nni.commands.arguments import (
    Debug,
    ExperimentDir,
    Foreground,
    Needed,
    Port,
    placed,
    say_no_port,
)

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig

Config = Annotated[
    Path, typer.Option("--config", "-c", metavar="FILE", help="The experiment file, ours or NNI's.")
]
UrlPrefix = Annotated[
    str | None,
    typer.Option(
        "--url_prefix",
        "-u",
        metavar="PREFIX",
        help="Refused: there is no web page in this version.",
        show_default=False,
    ),
]


def create(
    config: Config,
    port: Port = None,
    debug: Debug = False,
    foreground: Foreground = False,
    url_prefix: UrlPrefix = None,
) -> None:
    """Start an experiment in the background and print its id, as `bequeath create` does.

    With --foreground it is led in this terminal, as `bequeath run` does.
    """
    from dispatcher.cli.run import begin_here, begin_in_background, configured

    if url_prefix is not None:
        raise UserError(
            "there is no web page in this version, so it has no address",
            hint="leave it out; 'bequeath nni top' shows the experiment live",
            where="--url_prefix",
        )
    say_no_port(port)
    experiment = _debugged(configured(config, [], None), debug)
    if foreground:
        begin_here(experiment)
    else:
        begin_in_background(experiment)


def _debugged(config: ExperimentConfig, debug: bool) -> ExperimentConfig:
    if not debug:
        return config
    return config.model_copy(update={"debug": True, "log_level": "debug"})


def resume(
    experiment: Needed,
    port: Port = None,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", "-d", help="Refused: what is logged is fixed once an experiment has begun."
        ),
    ] = False,
    foreground: Foreground = False,
    experiment_dir: ExperimentDir = None,
) -> None:
    """Take up a stopped, failed or killed experiment, as `bequeath resume` does."""
    from dispatcher.cli.run import resume as ours

    if debug:
        raise UserError(
            "what is logged is fixed once an experiment has begun",
            hint="write 'debug: true' in the file, or begin another one by "
            "'bequeath nni create --debug'",
            where="--debug",
        )
    say_no_port(port)
    ours(placed(experiment, experiment_dir), background=not foreground)


def view(experiment: Needed, port: Port = None, experiment_dir: ExperimentDir = None) -> None:
    """Show the state of an experiment, as `bequeath status` does.

    Nothing has to be started for it: what is kept of a stopped experiment can always be read.
    """
    from dispatcher.cli.status import status

    say_no_port(port)
    status(placed(experiment, experiment_dir))
