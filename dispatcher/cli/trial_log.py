"""``bequeath trial log``: what a trial has printed, made harmless, and followed if wanted."""

from __future__ import annotations

import codecs
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Folder, OfExperiment, Trial
from dispatcher.cli.console import note
from dispatcher.cli.safe_text import safe_lines

if TYPE_CHECKING:
    from dispatcher.cli.find import Found
    from dispatcher.remote_logs import LogElsewhere

#: Seconds between looks at a file that grows in another process.
_LOOK_EVERY_S = 0.2
_CHUNK_BYTES = 1 << 16


def log(
    trial: Trial,
    experiment: OfExperiment = None,
    stderr: Annotated[
        bool, typer.Option("--stderr", help="What it printed to stderr, not to stdout.")
    ] = False,
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
    over (progress bars) its last state is shown. Of a trial on another machine it is fetched
    from there.
    """
    from dispatcher.cli.find import find_one

    found = find_one(experiment, folder)
    number = attempt if attempt is not None else _newest_attempt(found, trial)
    stream = "stderr" if stderr else "stdout"
    elsewhere = _elsewhere(found, trial, number)
    path = found.folder / "trials" / str(trial) / str(number) / stream
    with ExitStack() as stack:
        if elsewhere is not None and follow:
            chunks = elsewhere.follow(stream, lambda: _over(found, trial, number))
        elif follow:
            chunks = _growing(path, found, trial, number)
        else:
            if elsewhere is not None:
                fetched = tempfile.TemporaryDirectory(prefix="bequeath-log-")
                path = Path(stack.enter_context(fetched)) / stream
                elsewhere.fetch(path.parent)
            if not path.exists():
                _say_nothing(path, f"{trial}.{number}")
                return
            chunks = _whole(path)
        _print(chunks, raw=raw)


def _elsewhere(found: Found, trial: int, attempt: int) -> LogElsewhere | None:
    """The logs of an attempt on another machine; None for those that lie here."""
    from dispatcher import queries
    from dispatcher.remote_wiring import LOCAL

    with queries.ExperimentReader.open(found.folder) as reader:
        attempts = queries.trial(reader, trial).attempts
    worker = next((each.worker for each in attempts if each.number == attempt), None)
    if worker in (None, LOCAL):  # what lies here can be read whatever has become of the file
        return None
    from dispatcher.experiment.snapshot import from_json
    from dispatcher.folders import ExperimentFolder
    from dispatcher.remote_logs import LogElsewhere

    folder = ExperimentFolder(found.folder)
    config = from_json(folder.read_config(), str(folder.config))
    return LogElsewhere.of(config, found.id, worker, trial, attempt)


def _say_nothing(path: Path, attempt: str) -> None:
    stream = path.name
    other = "stdout" if stream == "stderr" else "stderr"
    where = ""
    if path.with_name(other).exists():
        where = f", but to {other}" + ("" if stream == "stderr" else " (--stderr shows it)")
    note(f"attempt {attempt} has printed nothing to {stream}{where}")


def _print(chunks: Iterator[bytes], *, raw: bool) -> None:
    if raw:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        return
    for text in _readable(chunks):
        typer.echo(text)


def _newest_attempt(found: Found, trial: int) -> int:
    from dispatcher import queries

    with queries.ExperimentReader.open(found.folder) as reader:
        return max(1, queries.trial(reader, trial).trial.attempt)


def _over(found: Found, trial: int, attempt: int) -> bool:
    from dispatcher import queries

    with queries.ExperimentReader.open(found.folder) as reader:
        one = queries.trial(reader, trial).trial
    return one.attempt > attempt or one.state in ("delivering", "ended", "backoff")


def _whole(path: Path) -> Iterator[bytes]:
    """The older parts of a rotated file, then the newest."""
    older = sorted(
        (p for p in path.parent.glob(f"{path.name}.*") if p.suffix[1:].isdigit()),
        key=lambda p: -int(p.suffix[1:]),
    )
    for part in (*older, path):
        with part.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk


def _growing(path: Path, found: Found, trial: int, attempt: int) -> Iterator[bytes]:
    """What is there and what comes, until the attempt is over; a rotation is followed."""
    with ExitStack() as stack:
        file = None
        while True:
            # Asked before the read, so that what came in between is still read.
            over = _over(found, trial, attempt)
            if file is None and path.exists():
                file = stack.enter_context(path.open("rb"))
            if file is not None:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk
                if not _same(path, file.fileno()):
                    stack.pop_all().close()
                    file = None
                    continue
            if over:
                return
            time.sleep(_LOOK_EVERY_S)


def _same(path: Path, descriptor: int) -> bool:
    """Whether the path still leads to the open file; while a rotation is under way, yes."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return True


def _readable(chunks: Iterator[bytes]) -> Iterator[str]:
    """Whole lines as harmless text; a last line without an end comes at the end."""
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
