"""``bequeath trial files`` and ``trial fetch``: what a trial has left, wherever it ran."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Folder, Json, OfExperiment, Trial
from dispatcher.errors import BackendError, PassingBackendError, UserError
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, note, print_json, print_table, say
from dispatcher.terminal.safe_text import safe_text

if TYPE_CHECKING:
    from dispatcher.attempt_files.attempt_at import AttemptAt
    from dispatcher.attempt_files.fetching import FetchResult
    from dispatcher.experiments.attempts import LocatedTrial
    from dispatcher.ports import AttemptFiles, FileEntry, FileList

#: Files shown without ``--number``.
_SHOWN = 200

_COLUMNS = (
    Column("file"),
    Column("size", right=True),
    Column("changed", right=True),
)

Attempt = Annotated[
    int | None,
    typer.Option("--attempt", metavar="NUMBER", min=1, help="The newest if not given."),
]


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
    from dispatcher.attempt_files import fetching
    from dispatcher.experiments.handle import ExperimentHandle

    with ExperimentHandle.find(experiment, folder).attempts(trial) as located:
        one = located.attempt(attempt)
        with _opened(located, one) as (place, listed):
            found_files = listed
    entries = [each for each in found_files.entries if links or not each.link]
    if as_json:
        files = [
            {
                "path": each.path,
                "kind": fetching.kind_of(each.path),
                "size": each.size,
                "changed_at": each.changed_at,
                "link": each.link,
            }
            for each in entries
        ]
        print_json({"attempt": one.name, "place": place, "files": files, "cut": found_files.cut})
        return
    if not entries:
        note(f"attempt {one.name} has left nothing on {safe_text(place)}")
        return
    rows = [
        (
            safe_text(each.path) + (" (link)" if each.link else ""),
            formatting.size(each.size),
            formatting.moment(each.changed_at),
        )
        for each in entries[:number]
    ]
    print_table(_COLUMNS, rows)
    more = len(entries) - number
    if more > 0 or found_files.cut:
        many = f"{more:,} more" if not found_files.cut else "and more"
        note(f"{many}; --number shows more of them")


@contextmanager
def _opened(located: LocatedTrial, attempt: AttemptAt) -> Iterator[tuple[str, FileList]]:
    """Give the list of an attempt's files, from its machine, else of those that were fetched."""
    from dispatcher.attempt_files import fetching
    from dispatcher.attempt_files.ways import files_here, files_of

    try:
        there = files_of(located.folder, attempt)
        try:
            yield there.place, there.list(most=fetching.MOST_FILES)
            return
        finally:
            there.close()
    except BackendError as error:
        if attempt.is_here:
            raise
        here = files_here(located.folder, attempt)
        listed = here.list(most=fetching.MOST_FILES)
        if not listed.entries:
            raise
        note(f"{safe_text(error.where or str(attempt.worker))}: {safe_text(error.message)}")
        note("what was fetched before:")
    yield here.place, listed


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
    short goes on where it ended. Links are left.
    """
    from dispatcher.attempt_files import fetching
    from dispatcher.attempt_files.attempt_at import kept_here
    from dispatcher.attempt_files.ways import files_of
    from dispatcher.experiment.sizes import parse_size
    from dispatcher.experiments.handle import ExperimentHandle

    most_bytes = None
    if most is not None:
        try:
            most_bytes = parse_size(most)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="'--max-size'") from error
    with ExperimentHandle.find(experiment, folder).attempts(trial) as located:
        one = located.attempt(attempt)
        ended = located.over(one.number)
        into = to.expanduser() if to is not None else kept_here(located.folder, one)
        if one.is_here and to is None:
            note(f"attempt {one.name} ran on this machine; its files are in {into}")
            return
        there = files_of(located.folder, one)
    usual = ("logs", "artefacts")
    asked = tuple(patterns or ())

    def wanted(entry: FileEntry) -> bool:
        if asked:
            return fetching.matches(entry.path, asked)
        return fetching.kind_of(entry.path) in usual

    try:
        outcome = fetching.fetch(
            there,
            into,
            one.name,
            wanted,
            most_bytes=most_bytes,
            over=usual if ended and not asked else (),
        )
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
