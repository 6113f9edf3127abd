"""``bequeath stop`` and ``bequeath kill``: ending an experiment so that it can be resumed."""

from __future__ import annotations

from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, Yes, confirmed
from dispatcher.terminal.console import note, print_json, say


def stop(
    experiment: Experiment = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="Let running trials finish; start no new ones.")
    ] = False,
    grace: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Time between asking trials to stop and ending them, in place of the file's.",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Return when it has stopped.")
    ] = True,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Stop an experiment: at once, or with --drain when its running trials have finished.

    Trials that are stopped run again after `bequeath resume`.
    """
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.RUNNING)
    handle.stop(now=not drain, reason="bequeath stop", grace_s=grace)
    if wait:
        if drain:
            note("waiting for running trials; Ctrl-C only ends this wait")
        handle.wait()
    if as_json:
        print_json({"experiment": handle.id, "kind": "drain" if drain else "now", "stopped": wait})
    else:
        say(f"{handle.id} {'has stopped' if wait else 'is stopping'}")


def kill(
    experiment: Experiment = None, yes: Yes = False, folder: Folder = None, as_json: Json = False
) -> None:
    """End the head, the tuner, the agent and all trials of an experiment at once (SIGKILL).

    For an experiment that does not answer any more. What the journal holds is kept, so
    `bequeath resume` goes on from there.
    """
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.CHANGE)
    confirmed(f"End all processes of {handle.id}?", yes)
    ended = handle.kill()
    if as_json:
        print_json({"experiment": handle.id, "processes": ended})
    else:
        noun = "process" if len(ended) == 1 else "processes"
        say(f"{handle.id}: {len(ended)} {noun} ended")
