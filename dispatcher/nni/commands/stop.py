"""``bequeath nni stop``: one experiment, those that begin so, or all."""

from __future__ import annotations

from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment
from dispatcher.errors import PassingBackendError, UserError
from dispatcher.terminal.console import note


def stop(
    experiment: Experiment = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            "-p",
            metavar="PORT",
            help="Refused: experiments have no ports by which they could be distinguished.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="All experiments that run.")
    ] = False,
) -> None:
    """Stop experiments, as `bequeath stop` does; they can be resumed.

    EXPERIMENT may end with a `*`: all that begin so are stopped. Without it the only one that
    runs is meant.
    """
    from dispatcher.cli.stop import stop as ours

    if port is not None:
        raise UserError(
            "experiments have no ports here",
            hint="name the experiment by its id: 'bequeath nni experiment list' shows those that "
            "run",
            where="--port",
        )
    for one in _meant(experiment, everything):
        ours(one)


def _meant(experiment: str | None, everything: bool) -> list[str | None]:
    from dispatcher.experiments.find import running_folders

    if experiment == "all":
        raise UserError("'stop all' is abolished, in NNI as well", hint="run: stop --all")
    if everything and experiment is not None:
        raise UserError(
            f"says to stop {experiment} and to stop all", hint="keep one of the two", where="--all"
        )
    if not everything and (experiment is None or not experiment.endswith("*")):
        return [experiment]
    beginning = "" if experiment is None else experiment[:-1]
    running = [str(each) for each in running_folders(None) if each.name.startswith(beginning)]
    if not running and not everything:
        raise PassingBackendError(f"no experiment that begins with {beginning!r} is running")
    if not running:
        note("no experiment is running")
    return [*running]
