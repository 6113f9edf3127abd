"""``bequeath trial log``: a trial's output, made harmless, and followed if wanted."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Attempt, Folder, OfExperiment, Trial, find_handle
from dispatcher.cli.trial.files import note_away
from dispatcher.safe_text import safe_lines, safe_text
from dispatcher.terminal.console import emit, note

if TYPE_CHECKING:
    from dispatcher.ports import AttemptFiles


def log(
    trial: Trial,
    experiment: OfExperiment = None,
    stderr: Annotated[bool, typer.Option("--stderr", help="Print stderr, not stdout.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the attempt is over.")
    ] = False,
    attempt: Attempt = None,
    rank: Annotated[
        int,
        typer.Option(
            "--rank",
            metavar="RANK",
            min=0,
            help="The node of this rank, where a trial has several.",
        ),
    ] = 0,
    raw: Annotated[
        bool, typer.Option("--raw", help="Pass every byte on, terminal escapes as well.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Print what a trial has printed.

    Characters that a terminal would obey are shown and not sent; of a line that was written
    over (progress bars) its last state is shown. Of a trial on another machine it is read
    there, unless it was fetched already.
    """
    from dispatcher.attempt_files import log_stream

    stream = ("stderr" if stderr else "stdout") + (f".rank{rank}" if rank else "")
    with find_handle(experiment, folder).attempts(trial) as located:
        if follow and not located.wait_until_begun(attempt):
            note(f"trial {trial} never started: it is {located.state}")
            return
        if not follow and attempt is None and not located.newest:
            note(f"trial {trial} has not started: it is {located.state}")
            return
        one = located.attempt(attempt)
        if follow:
            files = located.open_output(one)
            chunks = located.follow(one, files, stream)
        else:
            files, listed, away, lacks = located.show_files(one, stream)
            note_away(away, one)
            if lacks:
                note(f"{stream}: {safe_text(lacks)}")
            chunks = log_stream.whole(files, stream)
        try:
            if follow or listed.entries:
                _print(chunks, raw=raw)
            else:
                _say_nothing(files, stream, one.name)
        finally:
            files.close()


def _say_nothing(files: AttemptFiles, stream: str, attempt: str) -> None:
    from dispatcher.attempt_files import log_stream

    own, dot, rank = stream.partition(".")
    other = "stdout" if own == "stderr" else "stderr"
    where = ""
    if log_stream.parts(files, f"{other}{dot}{rank}"):
        where = f", but to {other}" + ("" if own == "stderr" else " (--stderr shows it)")
    note(f"attempt {attempt} has printed nothing to {stream}{where}")


def _print(chunks: Iterator[bytes], *, raw: bool) -> None:
    if raw:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        return
    for text in readable(chunks):
        emit(text)


def readable(chunks: Iterator[bytes]) -> Iterator[str]:
    """Yield whole lines as harmless text; a last line without its end comes last."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    for chunk in chunks:
        text = rest + decoder.decode(chunk)
        whole, newline, rest = text.rpartition("\n")
        if newline:
            yield safe_lines(whole)
    rest += decoder.decode(b"", final=True)
    if rest:
        yield safe_lines(rest)
