"""``bequeath tuner``: the list of tuners, a skeleton for a new one, and tools to test it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, find_handle
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.terminal.console import Column, heading, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.tuner_tools.check import CheckReport
    from dispatcher.tuner_tools.replay import ReplayReport

TUNER: Table = {
    "list": CommandEntry("cli.tuner:list_tuners", "Tuners and assessors that files may name."),
    "show": CommandEntry("cli.tuner:show", "One of them: arguments, search spaces, paper."),
    "new": CommandEntry("cli.tuner:new", "Write a tuner of your own to begin with, and its test."),
    "check": CommandEntry(
        "cli.tuner:check", "Find out whether a tuner keeps the threading contract."
    ),
    "replay": CommandEntry("cli.tuner:replay", "Run a tuner against an experiment's journal."),
}

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="As a file writes it.", show_default=False)
]


def list_tuners(as_json: Json = False) -> None:
    """List the tuners and assessors that an experiment file may name.

    Those of other packages are there as soon as the package is installed: it registers a class
    under the entry points `bequeath.tuners` or `bequeath.assessors`.
    """
    from tuners.catalogue import everything

    algorithms = everything()
    if as_json:
        print_json(
            [{"kind": x.kind, "name": x.name, "from": x.origin, "text": x.line} for x in algorithms]
        )
        return
    columns = [Column("name"), Column("kind"), Column("from"), Column("what it does")]
    print_table(columns, [(x.name, x.kind, x.origin, x.line) for x in algorithms])


def show(name: Name, as_json: Json = False) -> None:
    """Show a tuner or an assessor: its arguments with defaults, the types of search space that it
    can handle, and the paper it comes from."""
    from dispatcher.errors import UserError
    from tuners.catalogue import describe
    from tuners.errors import TunerArgumentError

    try:
        page = describe(name)
    except TunerArgumentError as error:
        raise UserError(error.message.rstrip("."), hint=error.hint) from error
    if as_json:
        print_json(page)
        return
    say(heading(f"{page.name}, {page.kind} ({page.class_name})"))
    say()
    say(page.text)
    for title, text in (("Paper", page.paper), ("Search space", page.spaces)):
        if text:
            say()
            say(f"{title}: {text}")
    say()
    columns = [Column("argument"), Column("type"), Column("default"), Column("meaning")]
    print_table(columns, [(x.name, x.type, x.default, x.text) for x in page.arguments])


def new(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A folder that is not there yet.", show_default=False),
    ],
) -> None:
    """Write a folder with a tuner, its test, a trial and an experiment file.

    The tuner is a small evolution in which children inherit weights; every part of it is there to
    be replaced. Its test passes, and so does `bequeath tuner check`.
    """
    from dispatcher.tuner_tools.skeleton import write_skeleton

    for path in write_skeleton(folder):
        say(str(path))
    note(f"try: bequeath run {shlex.quote(str(folder / 'experiment.yml'))}")


def check(
    tuner: Annotated[
        str,
        typer.Argument(
            metavar="TUNER",
            help="MODULE:CLASS (from the current folder or installed), FILE.py:CLASS, or a name.",
            show_default=False,
        ),
    ],
    class_args: Annotated[
        str, typer.Option("--class-args", metavar="JSON", help="Arguments of its constructor.")
    ] = "{}",
    search_space: Annotated[
        Path | None,
        typer.Option(
            "--search-space",
            metavar="FILE",
            help="YAML or JSON; numbers and choices of every type if not given.",
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", min=8, help="How many trials to play.")
    ] = 96,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of the trials' outcomes.")
    ] = 0,
    deadline: Annotated[
        float,
        typer.Option(
            "--deadline", metavar="SECONDS", min=1.0, help="Bound for each of the two runs."
        ),
    ] = 60.0,
    as_json: Json = False,
) -> None:
    """Play an experiment without trials around a tuner, and report breaches of the threading
    contract.

    Requests overlap, and their threads lose the interpreter in the middle of lines; a tenth of the
    trials fails, some of them after their result, or without the weights that they promised;
    results come late and out of order; in a second run the tuner's process is killed in between.
    The tuner runs in the process in which it always runs.

    Exit code 0 if nothing was found, 1 if something was, 3 if there is no such tuner, or it does
    not take these arguments.
    """
    from dispatcher.testing import rehearse
    from dispatcher.tuner_tools.named import class_arguments

    verdict = rehearse(
        tuner,
        class_args=class_arguments(class_args),
        search_space=search_space,
        trials=trials,
        seed=seed,
        deadline_s=deadline,
    )
    if as_json:
        print_json(_as_json(verdict))
    else:
        _tell_checked(tuner, verdict)
    if verdict.faults:
        raise typer.Exit(ExitCode.GENERAL)


def _tell_checked(tuner: str, verdict: CheckReport) -> None:
    for fault in verdict.faults:
        say(heading(fault.text))
        _show(fault.details if fault.details != fault.text else "")
    for remark in verdict.remarks:
        note(remark.text)
        _show(remark.details)
    others = f", {verdict.other_waits} for other things" if verdict.other_waits else ""
    played = (
        f"{verdict.trials} trials, {verdict.failed} of them failed, {verdict.waits} waits for "
        f"trials{others}, {verdict.abandoned} requests that ended with their parents"
    )
    if verdict.faults:
        say(f"{tuner} breaks the contract; played: {played}.")
        return
    back = f"; came back by {verdict.comes_back_by}" if verdict.comes_back_by else ""
    say(f"{tuner} keeps the contract; played: {played}{back}.")


def _show(details: str) -> None:
    for line in details.splitlines():
        say(f"    {line}")
    if details:
        say()


def _as_json(verdict: CheckReport) -> dict[str, Any]:
    return {
        "keeps_contract": not verdict.faults,
        "faults": [
            {"kind": one.kind, "text": one.text, "details": one.details} for one in verdict.faults
        ],
        "remarks": [{"text": one.text, "details": one.details} for one in verdict.remarks],
        "trials": verdict.trials,
        "failed": verdict.failed,
        "waits": verdict.waits,
        "abandoned": verdict.abandoned,
        "comes_back_by": verdict.comes_back_by,
        "other_waits": verdict.other_waits,
    }


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
    from dispatcher.tuner_tools.replay import replay_tuner

    handle = find_handle(experiment, folder, "use")

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
        _tell_replayed(seen)
    if seen.differences:
        raise typer.Exit(ExitCode.GENERAL)


def _tell_replayed(seen: ReplayReport) -> None:
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
