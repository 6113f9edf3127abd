"""``bequeath tuner replay``: a tuner against the journal of its experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.terminal.console import Column, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.tuner_tools.replay import ReplayReport


def replay(
    experiment: Experiment = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until",
            metavar="TRIAL",
            min=0,
            help="Stop once this trial is proposed, with the results that the tuner knew by then.",
        ),
    ] = None,
    pdb: Annotated[
        bool, typer.Option("--pdb", help="Break in Python's debugger before that last request.")
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Run an experiment's tuner once more, in this process, without training anything.

    Requests, results and ends come in the order of the journal; proposals that differ from those
    of then are shown. Nothing of the experiment is changed, and a head may be leading it. The code
    is the one that is there now: edit it, and see what it would have done.

    `breakpoint()` in the tuner works. Exit code 1 if answers differ.
    """
    from dispatcher.experiments.handle import ExperimentHandle, Purpose
    from dispatcher.tuner_tools.replay import replay_tuner

    handle = ExperimentHandle.find(experiment, folder, Purpose.USE)

    def before(name: str, trial: int) -> None:
        if pdb and name == "generate" and trial == until:
            breakpoint()  # the next request is the one that was asked for

    if pdb and until is None:
        raise typer.BadParameter("says where to break: add --until TRIAL", param_hint="'--pdb'")
    seen = replay_tuner(handle.folder, until=until, debugged=pdb, watch=before)
    if as_json:
        print_json(
            {
                "experiment": handle.id,
                "requests": seen.requests,
                "results": seen.results,
                "ends": seen.ends,
                "from_state": seen.from_state,
                "differences": [
                    {"trial": one.trial, "then": one.then, "now": one.now}
                    for one in seen.differences
                ],
                "notes": seen.notes,
            }
        )
    else:
        _tell(seen)
    if seen.differences:
        raise typer.Exit(ExitCode.GENERAL)


def _tell(seen: ReplayReport) -> None:
    for text in seen.notes:
        note(text)
    if seen.from_state:
        note("the journal was folded: the tuner began with its own state, not at the beginning")
    if seen.differences:
        columns = [Column("trial", right=True), Column("proposed then"), Column("proposed now")]
        print_table(columns, [(str(one.trial), one.then, one.now) for one in seen.differences])
        say()
    same = seen.requests - len(seen.differences)
    say(
        f"{seen.requests} requests, {seen.results} results and {seen.ends} ends repeated; "
        f"{same} answers as they were, {len(seen.differences)} that differ"
    )
