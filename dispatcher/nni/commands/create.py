"""``bequeath nni create``, ``resume`` and ``view``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import find_handle
from dispatcher.errors import UserError
from dispatcher.nni.commands.arguments import (
    Debug,
    ExperimentDir,
    Foreground,
    Needed,
    Port,
    UrlPrefix,
    placed,
)
from dispatcher.nni.commands.serve import demand_free, open_in_background

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig

Config = Annotated[
    Path, typer.Option("--config", "-c", metavar="FILE", help="The experiment file, ours or NNI's.")
]


def create(
    config: Config,
    port: Port = None,
    debug: Debug = False,
    foreground: Foreground = False,
    url_prefix: UrlPrefix = None,
) -> None:
    """Start an experiment in the background and print its id, as `bequeath create` does.

    With --foreground it is led in this terminal, as `bequeath run` does. With --port NNI's REST
    answers there, as `bequeath nni serve` has it.
    """
    from dispatcher.cli.run import begin_here, begin_in_background, configured

    _demand_port(port, url_prefix)
    experiment = _debugged(configured(config, [], None), debug)

    def begun(folder: Path) -> None:
        open_in_background(folder, port, url_prefix)

    if foreground:
        begin_here(experiment, begun=begun)
    else:
        begin_in_background(experiment, begun=begun)


def _demand_port(port: int | None, url_prefix: str | None) -> None:
    if url_prefix is not None and port is None:
        raise UserError(
            "nothing is served without a port", hint="add --port 8080", where="--url_prefix"
        )
    demand_free(port)


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
    demand_free(port)
    named = placed(experiment, experiment_dir)
    if foreground:
        open_in_background(find_handle(named, purpose="use").folder, port, None)
        ours(named)
        return
    ours(named, background=True)
    open_in_background(find_handle(named, purpose="use").folder, port, None)


def view(experiment: Needed, port: Port = None, experiment_dir: ExperimentDir = None) -> None:
    """Show the state of an experiment, as `bequeath status` does; with --port NNI's page and REST
    as well.

    Nothing has to be started for it: what is kept of a stopped experiment can always be read.
    """
    from dispatcher.cli.status import status

    demand_free(port)
    named = placed(experiment, experiment_dir)
    status(named)
    open_in_background(find_handle(named, purpose="use").folder, port, None)
