"""``bequeath stop`` and ``bequeath kill``: ending an experiment so that it can be resumed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, Yes, confirmed
from dispatcher.terminal.console import note, print_json, say

#: Seconds between checks whether the head is gone.
_LOOK_EVERY_S = 0.1


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
    from dispatcher.control.client import HeadClient
    from dispatcher.experiments.find import find_running

    located = find_running(experiment, folder)
    kind = "drain" if drain else "now"
    with HeadClient(located.folder) as client:
        client.ask("stop", kind=kind, reason="bequeath stop", grace_s=grace)
    if wait:
        if drain:
            note("waiting for running trials; Ctrl-C only ends this wait")
        _wait_until_gone(located.folder)
    if as_json:
        print_json({"experiment": located.id, "kind": kind, "stopped": wait})
    else:
        say(f"{located.id} {'has stopped' if wait else 'is stopping'}")


def _wait_until_gone(folder: Path) -> None:
    from dispatcher.folders.status import is_led

    while is_led(folder):
        time.sleep(
            _LOOK_EVERY_S
        )  # the end of another process, which is no child, can only be polled


def kill(
    experiment: Experiment = None, yes: Yes = False, folder: Folder = None, as_json: Json = False
) -> None:
    """End the head, the tuner, the agent and all trials of an experiment at once (SIGKILL).

    For an experiment that does not answer any more. What the journal holds is kept, so
    `bequeath resume` goes on from there.
    """
    from dispatcher.experiments.find import find_one
    from dispatcher.experiments.processes import kill_experiment

    located = find_one(experiment, folder, change=True)
    confirmed(f"End all processes of {located.id}?", yes)
    ended = kill_experiment(located.folder)
    if as_json:
        print_json({"experiment": located.id, "processes": ended})
    else:
        noun = "process" if len(ended) == 1 else "processes"
        say(f"{located.id}: {len(ended)} {noun} ended")
