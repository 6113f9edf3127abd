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
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    purpose = Purpose.CHANGE if take_over else Purpose.RESUME
    handle = ExperimentHandle.find(experiment, folder, purpose)
    if background:
        warning = handle.going_on_warning()
        if warning:
            note(warning)  # the head writes it to its log only
        pid = handle.start(take_over=take_over)
        if as_json:
            print_json({"experiment": handle.id, "folder": str(handle.folder), "pid": pid})
        else:
            say(handle.id)
        return
    from dispatcher.cli.foreground import lead

    note(f"experiment {handle.id} in {handle.folder}")
    lead(handle.folder, handle.name, as_json=as_json, take_over=take_over)
