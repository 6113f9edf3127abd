"""``bequeath trial files``, ``fetch`` and ``shell``: what a trial has left, wherever it ran."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import (
    Attempt,
    Folder,
    Json,
    OfExperiment,
    Trial,
    context_for,
    find_handle,
)
from dispatcher.errors import BackendError, PassingBackendError, UserError
from dispatcher.safe_text import safe_text
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.attempt_files.attempt_at import AttemptAt
    from dispatcher.attempt_files.fetching import FetchResult
    from dispatcher.ports import AttemptFiles

#: Files shown without ``--number``.
_SHOWN = 200

_COLUMNS = (
    Column("file"),
    Column("size", right=True),
    Column("changed", right=True),
)


def files(
    trial: Trial,
    experiment: OfExperiment = None,
    attempt: Attempt = None,
    links: Annotated[
        bool, typer.Option("--links", help="Links as well, such as those to the code.")
    ] = False,
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="NUMBER", min=1, help="At most this many.")
    ] = _SHOWN,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """List the files that a trial has left, with their sizes.

    These are its output (`stdout`, `stderr`), its artefacts (`artefacts/`), its working directory
    if it has one of its own (`work/`), and its checkpoints (`checkpoints/`). If its machine cannot
    be reached, the files that were fetched are shown.
    """
    from dispatcher.operations.arguments import ListFiles
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import TRIAL_FILES

    wanted = ListFiles(attempt=attempt, links=links)
    context = context_for("trial files", folder)
    answer = perform(TRIAL_FILES, context, wanted, experiment=experiment, trial=trial)
    if as_json:
        print_json(answer)
        return
    if not answer.files:
        note(f"attempt {answer.attempt} has left nothing on {safe_text(answer.place)}")
        return
    rows = [
        (
            safe_text(each.path) + (" (link)" if each.link else ""),
            formatting.size(each.size),
            formatting.moment(each.changed_at),
        )
        for each in answer.files[:number]
    ]
    print_table(_COLUMNS, rows)
    more = len(answer.files) - number
    if more > 0 or answer.cut:
        many = f"{more:,} more" if not answer.cut else "and more"
        note(f"{many}; --number shows more of them")


def note_away(error: BackendError | None, attempt: AttemptAt) -> None:
    """Note why only files that are here are shown, if that is so."""
    if error is not None:
        note(f"{safe_text(error.where or str(attempt.worker))}: {safe_text(error.message)}")
        note("what is here of it:")


def fetch(
    trial: Trial,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN",
            help="Files to fetch, such as 'artefacts/*.png', work, '*'. Default: its output and "
            "its artefacts.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Target folder; the trial's folder in the experiment if not given.",
            show_default=False,
        ),
    ] = None,
    most: Annotated[
        str | None,
        typer.Option(
            "--max-size", metavar="SIZE", help="Fetch no more than this in all, such as 2gb."
        ),
    ] = None,
    experiment: OfExperiment = None,
    attempt: Attempt = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Bring files of a trial here from the machine where it runs or ran.

    Files are whole or not there. What is here already is not fetched again, and what was cut
    short goes on where it ended. Links are left. Where nothing is left there, what was fetched
    before counts, and the end of what the trial has printed.
    """
    from dispatcher.experiment.quantities import parse_size

    most_bytes = None
    if most is not None:
        try:
            most_bytes = parse_size(most)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="'--max-size'") from error
    asked = tuple(patterns or ())
    with find_handle(experiment, folder).attempts(trial) as located:
        one = located.attempt(attempt)
        into = to.expanduser() if to is not None else located.folder_of(one)
        if one.is_here and to is None:
            note(f"attempt {one.name} ran on this machine; its files are in {into}")
            return
        there, gone = located.open_to_fetch(one)
        try:
            note_away(gone, one)
            if gone is not None and to is None:
                outcome = located.kept(there, asked, gone)
            else:
                outcome = located.fetch(one, there, asked, into=into, most_bytes=most_bytes)
        finally:
            there.close()
    _tell(outcome, there, into, one.name, asked, as_json=as_json)


def _tell(
    outcome: FetchResult,
    there: AttemptFiles,
    into: Path,
    attempt: str,
    asked: tuple[str, ...],
    *,
    as_json: bool,
) -> None:
    nothing = not (outcome.fetched or outcome.same or outcome.left)
    if nothing and asked:
        raise UserError(
            f"nothing of attempt {attempt} matches {' '.join(map(repr, asked))}",
            hint=f"'bequeath trial files {attempt.partition('.')[0]}' lists what there is",
            where=there.place,
        )
    if as_json:
        print_json(
            {
                "attempt": attempt,
                "place": there.place,
                "folder": os.fspath(into),
                "fetched": outcome.fetched,
                "bytes": outcome.nbytes,
                "same": outcome.same,
                "left": outcome.left,
                "cut": outcome.cut,
            }
        )
    elif nothing:
        note(f"attempt {attempt} has left nothing on {safe_text(there.place)}")
    else:
        many = len(outcome.fetched)
        here = f", {outcome.same} were here already" if outcome.same else ""
        size = formatting.size(outcome.nbytes)
        say(f"{many} file{'' if many == 1 else 's'} ({size}) in {into}{here}")
    for path, why in outcome.left.items():
        note(f"left: {safe_text(path)}: {safe_text(why)}")
    if outcome.cut:
        note("there are more files than are looked at: name a PATTERN in a folder")
    if outcome.left:
        raise PassingBackendError(
            f"{len(outcome.left)} of the files were not fetched", where=there.place
        )


def shell(
    trial: Trial,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Command to run, after --; a shell if not given.",
            show_default=False,
        ),
    ] = None,
    experiment: OfExperiment = None,
    attempt: Attempt = None,
    folder: Folder = None,
) -> None:
    """Open a shell in a trial's working directory, on the machine where it runs or ran.

    It has the trial's environment, its GPUs and its Python included, but not the secret by which
    the trial reports. With a COMMAND that is run, with stdin passed on; its exit code is ours.
    """
    from dispatcher.attempt_files.ways import files_of

    with find_handle(experiment, folder).attempts(trial) as located:
        one = located.attempt(attempt)
        files = files_of(located.folder, one, for_shell=True)
        ended = located.over(one.number)
        where = located.experiment.id
    terminal = os.isatty(0) and os.isatty(1)
    if terminal and not command:
        past = f" (it is {located.state})" if ended else ""
        note(f"{where}: attempt {one.name} on {safe_text(files.place)}{past}; 'exit' leads back")
    try:
        code = files.shell(command or [], terminal=terminal)
    finally:
        files.close()
    raise typer.Exit(code)
