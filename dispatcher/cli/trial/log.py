"""``bequeath trial log``: a trial's output, made harmless, and followed if wanted."""

from __future__ import annotations

import codecs
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Folder, OfExperiment, Trial
from dispatcher.errors import BackendError
from dispatcher.terminal.console import emit, note
from dispatcher.terminal.safe_text import safe_lines, safe_text

if TYPE_CHECKING:
    from dispatcher.attempt_files.attempt_at import AttemptAt
    from dispatcher.experiments.attempts import LocatedTrial
    from dispatcher.ports import AttemptFiles

#: Seconds between looks at a trial that has not begun, and at a file on another machine.
_LOOK_EVERY_S = 0.5
_LOOK_ELSEWHERE_S = 1.0


def log(
    trial: Trial,
    experiment: OfExperiment = None,
    stderr: Annotated[bool, typer.Option("--stderr", help="Print stderr, not stdout.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the attempt is over.")
    ] = False,
    attempt: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help="The newest if not given.", show_default=False),
    ] = None,
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
    from dispatcher.experiments.handle import ExperimentHandle

    stream = "stderr" if stderr else "stdout"
    with ExperimentHandle.find(experiment, folder).attempts(trial) as located:
        if follow and not _wait_for_its_start(located, attempt):
            return
        if not follow and attempt is None and not located.newest:
            note(f"trial {trial} has not started: it is {located.state}")
            return
        one = located.attempt(attempt)
        files = _files(located, one)
        try:
            if follow:
                every_s = log_stream.LOOK_EVERY_S if one.is_here else _LOOK_ELSEWHERE_S
                chunks = log_stream.follow(
                    files, stream, lambda: _over(located, one.number), look_every_s=every_s
                )
            else:
                files = _reached(located, one, files, stream)
                if not log_stream.parts(files, stream):
                    _say_nothing(files, stream, one.name)
                    return
                chunks = log_stream.whole(files, stream)
            _print(chunks, raw=raw)
        finally:
            files.close()


def _files(located: LocatedTrial, attempt: AttemptAt) -> AttemptFiles:
    """Return the files of an attempt: those fetched after its end, else those on its machine."""
    from dispatcher.attempt_files.ways import files_here, files_of, is_fetched

    fetched = located.over(attempt.number) and is_fetched(located.folder, attempt, "logs")
    if attempt.is_here or fetched:
        return files_here(located.folder, attempt)
    return files_of(located.folder, attempt)


def _reached(
    located: LocatedTrial, attempt: AttemptAt, files: AttemptFiles, stream: str
) -> AttemptFiles:
    """Return the same files, or those fetched before, if the machine cannot be reached."""
    from dispatcher.attempt_files import log_stream
    from dispatcher.attempt_files.ways import files_here

    try:
        log_stream.parts(files, stream)
        return files
    except BackendError as error:
        here = files_here(located.folder, attempt)
        if not log_stream.parts(here, stream):
            raise
        note(f"{safe_text(error.where or str(attempt.worker))}: {safe_text(error.message)}")
        note("what was fetched before:")
        return here


def _wait_for_its_start(located: LocatedTrial, attempt: int | None) -> bool:
    """Wait until the attempt has started; false if it never will."""
    while (attempt or 1) > located.newest:
        if located.detail.trial.over:
            note(f"trial {located.trial} never started: it is {located.state}")
            return False
        time.sleep(_LOOK_EVERY_S)
        located.look_again()
    return True


def _over(located: LocatedTrial, number: int) -> bool:
    located.look_again()
    return located.over(number)


def _say_nothing(files: AttemptFiles, stream: str, attempt: str) -> None:
    from dispatcher.attempt_files import log_stream

    other = "stdout" if stream == "stderr" else "stderr"
    where = ""
    if log_stream.parts(files, other):
        where = f", but to {other}" + ("" if stream == "stderr" else " (--stderr shows it)")
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
