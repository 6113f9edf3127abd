"""``bequeath resume``: go on with an experiment whose head has ended, however it ended."""

from __future__ import annotations

from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.terminal.console import note, print_json, say


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
    from dispatcher.experiments.find import find_one, find_resumable

    if take_over:
        located = find_one(experiment, folder, change=True)
    else:
        located = find_resumable(experiment, folder)
    if background:
        from dispatcher.background import start_in_background
        from dispatcher.experiment.snapshot import from_json
        from dispatcher.folders.experiment_folder import ExperimentFolder
        from dispatcher.maintenance.retention import gone_before_it_goes_on

        home = ExperimentFolder(located.folder)
        warning = gone_before_it_goes_on(home, from_json(home.read_config(), str(home.config)))
        if warning:
            note(warning)  # the head writes it to its log only
        pid = start_in_background(located.folder, take_over=take_over)
        if as_json:
            print_json({"experiment": located.id, "folder": str(located.folder), "pid": pid})
        else:
            say(located.id)
        return
    from dispatcher.cli.foreground import lead

    note(f"experiment {located.id} in {located.folder}")
    lead(located.folder, located.name, as_json=as_json, take_over=take_over)
