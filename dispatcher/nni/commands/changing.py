"""``bequeath nni`` about one experiment: ``stop``, ``top``, ``update``, ``trial``."""

from __future__ import annotations

from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, find_handle
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.errors import PassingBackendError, UserError
from dispatcher.nni.commands.arguments import File, trial_number
from dispatcher.terminal.console import note

UPDATE: Table = {
    "searchspace": CommandEntry(
        "nni.commands.changing:searchspace", "The search space, from a file."
    ),
    "concurrency": CommandEntry(
        "nni.commands.changing:concurrency", "How many trials run at once."
    ),
    "duration": CommandEntry("nni.commands.changing:duration", "How long new trials are begun."),
    "trialnum": CommandEntry(
        "nni.commands.changing:trialnum", "How many trials there are at most."
    ),
}

TRIAL: Table = {
    "ls": CommandEntry("nni.commands.changing:ls", "List trials as JSON, in NNI's layout."),
    "kill": CommandEntry("nni.commands.changing:kill", "End a running or waiting trial."),
    "codegen": CommandEntry(
        "nni.commands.refused:trial_codegen",
        "Refused: annotated code is read at the start of an experiment.",
        lenient=True,
    ),
}

Value = Annotated[str, typer.Option("--value", "-v", metavar="VALUE", help="As in the file.")]


def stop(
    experiment: Experiment = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            "-p",
            metavar="PORT",
            help="The experiment whose REST is served at this port.",
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
        ours(_served_at(port, experiment, everything))
        return
    for one in _meant(experiment, everything):
        ours(one)


def _served_at(port: int, experiment: str | None, everything: bool) -> str:
    from dispatcher.nni.rest.endpoints import endpoint_at
    from dispatcher.nni.rest.settings import nni_state

    if experiment is not None or everything:
        raise UserError("a port names one experiment", hint="give nothing else", where="--port")
    endpoint = endpoint_at(nni_state(), port)
    if endpoint is None:
        raise UserError(
            f"no experiment of yours is served at port {port}",
            hint="name it by its id: 'bequeath nni experiment list' shows those that run",
            where="--port",
        )
    return endpoint.folder


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


def top(
    experiment: Experiment = None,
    every_s: Annotated[
        float,
        typer.Option("--time", "-t", metavar="SECONDS", min=0.1, help="Time between two updates."),
    ] = 3.0,
) -> None:
    """Watch an experiment live, as `bequeath top` does."""
    from dispatcher.cli.top import watch

    watch(experiment, None, every_s=every_s)


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
    from dispatcher.nni.rows import is_job, job
    from dispatcher.terminal.console import print_json

    if head is not None and tail is not None:
        raise typer.BadParameter("--head and --tail exclude each other", param_hint="'--tail'")
    handle = find_handle(experiment, purpose="use")
    trials = [one for one in handle.trials() if is_job(one)]
    if head is not None or tail is not None:
        valued = [one for one in trials if one.over and one.value is not None]
        valued.sort(key=lambda one: one.value or 0.0, reverse=head is not None)
        trials = valued[: head or tail]
    print_json([job(one, handle.folder) for one in trials])


def kill(
    trial: Annotated[
        str, typer.Option("--trial_id", "-T", metavar="TRIAL", help="The trial's number.")
    ],
    experiment: Experiment = None,
) -> None:
    """End a trial, running or not yet started, as `bequeath trial kill` does."""
    from dispatcher.cli.trial.change import kill as ours

    ours([trial_number(trial)], experiment)
