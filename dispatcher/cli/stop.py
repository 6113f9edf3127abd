"""``bequeath stop`` and ``bequeath kill``: ending an experiment so that it can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dispatcher.operations.answers import Deleted, Killed, Stopped

from dispatcher.cli.arguments import Experiment, Folder, Json, Yes, context_for
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

    Trials that are stopped run again after `bequeath resume`. Of an experiment that is named and
    has lost its head, the allocations at schedulers are cancelled.
    """
    from dispatcher.operations.arguments import StopExperiment
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import STOP

    wish = StopExperiment(drain=drain, grace_s=grace, wait=wait, reason="bequeath stop")
    answer = perform(STOP, context_for("stop", folder), wish, experiment=experiment)
    tell_swept(answer)
    if as_json:
        print_json(answer)
    elif answer.allocations:
        say(f"{answer.experiment} has no head; its allocations are cancelled")
    else:
        say(f"{answer.experiment} {'has stopped' if answer.stopped else 'is stopping'}")


def kill(
    experiment: Experiment = None, yes: Yes = False, folder: Folder = None, as_json: Json = False
) -> None:
    """End the head, the tuner, the agent and all trials of an experiment at once (SIGKILL).

    For an experiment that does not answer any more. What the journal holds is kept, so
    `bequeath resume` goes on from there. Allocations at schedulers are cancelled.
    """
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import KILL

    answer = perform(KILL, context_for("kill", folder, yes=yes), experiment=experiment)
    if as_json:
        print_json(answer)
    else:
        noun = "process" if len(answer.processes) == 1 else "processes"
        say(f"{answer.experiment}: {len(answer.processes)} {noun} ended")
    tell_swept(answer)


def tell_swept(answer: Stopped | Killed | Deleted) -> None:
    """Say on stderr what was cancelled at schedulers, and which of them could not be asked."""
    if answer.allocations:
        note(f"cancelled at its scheduler: {', '.join(answer.allocations)}")
    for trouble in answer.troubles:
        note(f"look yourself whether allocations are left: {trouble}")
