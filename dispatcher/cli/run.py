"""``bequeath run``, ``create``, ``resume``: experiments that begin or go on, here or behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Experiment, ExperimentFile, Folder, Json, context_for
from dispatcher.terminal.console import note, print_json, say

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig
    from dispatcher.operations.answers import StartedHead

_SCRIPT = ".py"

#: Options whose next argument is their value, and no file.
_TAKING = (["--set"], ["--name"], ["--chaos"], ["--chaos-every"])

Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace a value of the file: trialConcurrency, maxTrialNumber, "
        "maxExperimentDuration, stopWhen, lookahead or searchSpace. May be repeated.",
        show_default=False,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="Replace the experiment's name.", show_default=False
    ),
]


ScriptArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ARG",
        help="Arguments of a script: all that follows it, options as well.",
        show_default=False,
    ),
]


def run(
    file: ExperimentFile,
    arguments: ScriptArguments = None,
    changes: Changes = None,
    name: Name = None,
    as_json: Json = False,
    chaos: Annotated[
        int | None,
        typer.Option(
            "--chaos",
            metavar="SEED",
            help="A test tool: kill, stop and delay the experiment's own processes, its head as "
            "well, by the schedule of this seed. Give it many retries.",
            show_default=False,
        ),
    ] = None,
    chaos_every: Annotated[
        float,
        typer.Option(
            "--chaos-every",
            metavar="SECONDS",
            help="Mean time between two acts of --chaos.",
            min=0.05,
        ),
    ] = 1.0,
    web: Annotated[
        bool, typer.Option("--web", help="Serve the page meanwhile, and print a link to it.")
    ] = False,
) -> None:
    """Run an experiment file and show how it goes, or a script that starts one by NNI's API.

    Ctrl-C once lets running trials finish and starts no new ones; twice stops them at once.
    Either way `bequeath resume` goes on from there. Progress goes to stderr, the result to
    stdout. A file that ends in `.py` is run as a script, in which `nni.experiment` is ours;
    what follows it is for the script.
    """
    if file.suffix == _SCRIPT:
        from dispatcher.experiment.dialects import first_dialect

        if changes or name is not None or as_json or chaos is not None or web:
            raise typer.BadParameter(
                "a script takes its own options only, and they follow it", param_hint="'FILE'"
            )
        first_dialect("scripts").run_script(file, arguments or [])
        return
    if arguments:
        raise typer.BadParameter(
            f"an experiment file takes no arguments: {' '.join(arguments)}", param_hint="'ARG'"
        )
    config = configured(file, changes or [], name)
    if web:
        from dispatcher.cli.web import served_meanwhile

        with served_meanwhile():
            begin_here(config, as_json, chaos, chaos_every)
        return
    begin_here(config, as_json, chaos, chaos_every)


def arranged(arguments: list[str]) -> list[str]:
    """Put ``--`` after a script, so that all that follows is passed to the script."""
    for place, word in enumerate(arguments):
        if word == "--":
            break
        if word.endswith(_SCRIPT) and arguments[place - 1 : place] not in _TAKING:
            return [*arguments[: place + 1], "--", *arguments[place + 1 :]]
    return arguments


def begin_here(
    config: ExperimentConfig,
    as_json: bool = False,
    chaos: int | None = None,
    chaos_every: float = 1.0,
    begun: Callable[[Path], None] | None = None,
) -> None:
    """Make an experiment's folder and lead it in this terminal, to its end.

    Args:
        config: the experiment.
        as_json: print the outcome as one JSON document.
        chaos: seed of the schedule of faults; None: no faults.
        chaos_every: mean time between two faults, in seconds.
        begun: gets the folder before it is led.
    """
    from dispatcher.experiments.handle import ExperimentHandle

    handle = ExperimentHandle.create(config)
    note(f"experiment {handle.id} in {handle.folder}")
    if begun is not None:
        begun(handle.folder)
    if chaos is not None:
        from dispatcher.cli.chaos import lead_under_chaos

        lead_under_chaos(handle, chaos, chaos_every, as_json=as_json)
        return
    from dispatcher.cli.foreground import lead

    lead(handle, as_json=as_json)


def configured(file: Path, changes: list[str], name: str | None) -> ExperimentConfig:
    """Read an experiment file and apply the changes of the command line.

    Args:
        file: the experiment file.
        changes: texts ``KEY=VALUE``.
        name: the experiment's name; None: that of the file.

    Raises:
        ExperimentFileErrors: the file or a change is wrong.
    """
    from dispatcher.experiment import load_experiment
    from dispatcher.experiment.updates import apply_update, renamed
    from dispatcher.experiments import known_folders

    def remark(text: str) -> None:
        note(f"{file}: {text}")

    config = known_folders.with_default_folder(load_experiment(file, remark))
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise typer.BadParameter(f"{change!r} is not KEY=VALUE", param_hint="'--set'")
        config = apply_update(config, key.strip(), value)
    if name is not None:
        config = renamed(config, name)
    return config


def create(
    file: ExperimentFile, changes: Changes = None, name: Name = None, as_json: Json = False
) -> None:
    """Start an experiment in the background and print its id.

    It goes on when the terminal is closed. Watch it with `bequeath top`, end it with
    `bequeath stop`.
    """
    begin_in_background(configured(file, changes or [], name), as_json=as_json)


def begin_in_background(
    config: ExperimentConfig,
    *,
    as_json: bool = False,
    begun: Callable[[Path], None] | None = None,
) -> None:
    """Make an experiment's folder, start a head for it in the background, and print its id.

    Args:
        config: the experiment.
        as_json: print a JSON document.
        begun: gets the folder once it is led.
    """
    from dispatcher.experiments.handle import ExperimentHandle
    from dispatcher.operations.answers import StartedHead

    handle = ExperimentHandle.create(config)
    _print_started(StartedHead(handle.id, str(handle.folder), handle.start()), as_json=as_json)
    if not as_json:
        note(f"runs in {handle.folder}; watch it with: bequeath top {handle.id}")
    if begun is not None:
        begun(handle.folder)


def _print_started(started: StartedHead, *, as_json: bool) -> None:
    if as_json:
        print_json(started)
    else:
        say(started.experiment)


def resume(
    experiment: Experiment = None,
    background: Annotated[
        bool, typer.Option("--background", "-b", help="Return once it runs.")
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Lead even if another head does, hung or not; it can do no harm afterwards.",
        ),
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Take up an experiment that was stopped, failed, or lost its head.

    The journal is replayed: no result is lost, the tuner receives none of them twice, and trials
    that still run are taken up again. Without EXPERIMENT the newest one is meant.

    An experiment that a head leads already is refused, unless you --take-over: that head is
    asked to leave, and fenced by its number if it does not answer. Trials go on meanwhile.
    """
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import RESUME, TAKE_OVER

    wish = TAKE_OVER if take_over else RESUME
    context = context_for("resume", folder)
    if background:
        _print_started(perform(wish, context, experiment=experiment), as_json=as_json)
        return
    from dispatcher.cli.foreground import lead

    handle = context.handle(experiment, wish.purpose)

    note(f"experiment {handle.id} in {handle.folder}")
    lead(handle, as_json=as_json, take_over=take_over)
