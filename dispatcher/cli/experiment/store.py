"""``bequeath experiment backup`` and ``compact``: care of an experiment's store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.terminal import formatting
from dispatcher.terminal.console import note, print_json, say


def backup(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="Id, the beginning of one, a name or a folder.",
            show_default=False,
        ),
    ],
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
    from dispatcher.experiments.handle import ExperimentHandle, Purpose
    from dispatcher.maintenance.backup import back_up

    handle = ExperimentHandle.find(experiment, folder, Purpose.DAMAGED)
    done = back_up(handle.folder, destination, weights=weights)
    if as_json:
        print_json(
            {
                "experiment": done.folder.name,
                "folder": str(done.folder),
                "weights": done.weights,
                "linked": done.linked,
                "gone": done.gone,
                "unseen": done.unseen,
                "links": list(done.links),
            }
        )
        return
    say(f"{done.folder.name} is backed up to {done.folder}")
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
    from dispatcher.experiments import care
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.DAMAGED)
    done, before, after = care.compact(handle.place)
    if as_json:
        sizes = {"bytes_before": before, "bytes": after}
        print_json({"experiment": handle.id, "compacted": done, **sizes})
    elif done:
        say(f"{handle.id}: {formatting.size(before)} before, {formatting.size(after)} now")
    else:
        say(f"{handle.id}: there is nothing to fold")
