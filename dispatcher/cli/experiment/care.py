"""``bequeath experiment backup``, ``compact``, ``fetch``, ``verify``, ``delete``: care of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import (
    Experiment,
    Folder,
    Json,
    NamedExperiment,
    Yes,
    context_for,
)
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.stop import tell_swept
from dispatcher.safe_text import safe_text
from dispatcher.terminal import formatting
from dispatcher.terminal.console import note, print_json, say

if TYPE_CHECKING:
    from dispatcher.operations.answers import FetchedWorker


def backup(
    experiment: NamedExperiment,
    destination: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Folder to put the backup in, under its id.", show_default=False
        ),
    ],
    weights: Annotated[
        bool, typer.Option("--weights", help="Take the committed weights along.")
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Copy an experiment into another folder, also while it runs.

    The copy is an experiment of its own that `bequeath resume DIR/ID` takes up; copying it again
    restores it in another place. Weights become hard links where that is possible. Keys, logs and
    the outputs of trials stay behind.

    Without --weights a copy goes on with the weights root that the file names, so do not let
    both run.
    """
    from dispatcher.operations.arguments import BackUp
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_BACKUP

    wish = BackUp(destination=str(destination), weights=weights)
    context = context_for("experiment backup", folder)
    done = perform(EXPERIMENT_BACKUP, context, wish, experiment=experiment)
    if as_json:
        print_json(done)
        return
    say(f"{done.experiment} is backed up to {done.folder}")
    if weights:
        how = "hard links" if done.linked else "copies"
        say(f"with weights of {formatting.count(done.weights, 'trial')}, as {how}")
    if done.unseen:
        note(f"{done.unseen}: they stay there")
    for link in done.links:
        note(f"{link} is a symbolic link: it is not followed, and what it leads to not copied")
    if done.gone:
        note(f"weights of {formatting.count(done.gone, 'trial')} went meanwhile; the copy knows")


def compact(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Make an experiment's journal shorter: fold what is past into one state.

    A running head does so itself when enough has gathered, if its tuner keeps a state. Nothing
    is lost that a resume needs; of the trials that were folded, `verify` can only check that they
    have not changed since.
    """
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_COMPACT

    context = context_for("experiment compact", folder)
    answer = perform(EXPERIMENT_COMPACT, context, experiment=experiment)
    if as_json:
        print_json(answer)
    elif answer.compacted:
        before, after = formatting.size(answer.bytes_before), formatting.size(answer.bytes)
        say(f"{answer.experiment}: {before} before, {after} now")
    else:
        say(f"{answer.experiment}: there is nothing to fold")


def fetch(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Fetch the files of trials on other machines, by the rules of the key `fetch`.

    A running experiment does so by itself; this is for one that ended while a machine was not to
    be reached. What is here already is not fetched again.
    """
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_FETCH

    def tell(part: tuple[str, FetchedWorker]) -> None:
        worker, seen = part
        if not as_json:
            say(f"{safe_text(worker)}: {formatting.count(seen.attempts, 'attempt')}")
            if seen.error is not None:
                note(f"{safe_text(worker)}: {safe_text(seen.error)}")

    context = context_for("experiment fetch", folder, part=tell)
    answer = perform(EXPERIMENT_FETCH, context, experiment=experiment)
    if as_json:
        print_json(answer)
    elif not answer.workers:
        note(f"{answer.experiment} fetches nothing: its trials run here, or its file says 'never'")
    if any(one.error for one in answer.workers.values()):
        raise typer.Exit(ExitCode.ENVIRONMENT)


def delete(
    experiment: NamedExperiment,
    yes: Yes = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Delete an experiment: its folder with the journal, logs, and the weights in it.

    Weights below a `weightsRoot` outside of the folder stay where they are. Allocations that a
    dead head has left at schedulers are cancelled.
    """
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_DELETE

    context = context_for("experiment delete", folder, yes=yes)
    answer = perform(EXPERIMENT_DELETE, context, experiment=experiment)
    tell_swept(answer)
    if as_json:
        print_json(answer)
    else:
        say(f"{answer.experiment} is deleted")


def verify(
    experiment: Experiment = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the tables again from the journal.")
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Replay an experiment's journal and compare it with the tables made from it.

    The journal is the truth; the tables can be made again from it. Exit code 1 if they
    differ.
    """
    from dispatcher.operations.arguments import VerifyStore
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_VERIFY

    context = context_for("experiment verify", folder)
    wish = VerifyStore(rebuild=rebuild)
    result = perform(EXPERIMENT_VERIFY, context, wish, experiment=experiment)
    if as_json:
        print_json(result)
    else:
        events = formatting.count(result.events, "event")
        trials = formatting.count(result.trials, "trial")
        say(f"{events}, {trials}: {'all of it holds' if result.ok else 'not all of it holds'}")
        for line in (*result.damage, *filter(None, [result.broken_at, result.mended])):
            say(line)
        for difference in result.differences:
            say(difference)
    if not result.ok:
        raise typer.Exit(ExitCode.GENERAL)
