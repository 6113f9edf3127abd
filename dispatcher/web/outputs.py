"""Routes for what a trial wrote: its output as it grows, and its files, wherever it ran."""

from __future__ import annotations

import asyncio
import codecs
import concurrent.futures
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.attempt_files import fetching, log_stream
from dispatcher.attempt_files.log_stream import StreamPart
from dispatcher.errors import DispatcherError, UserError
from dispatcher.experiments.attempts import LocatedTrial
from dispatcher.experiments.view import ExperimentView
from dispatcher.operations.operation import Arguments, Scope
from dispatcher.ports import AttemptFiles
from dispatcher.web.answering import PIECE_BYTES, encoded
from dispatcher.web.audit import AuditLog
from dispatcher.web.events import STAY_S, EventStream, event, refuse_head
from dispatcher.web.faults import RequestRefused
from dispatcher.web.keys import Keys
from dispatcher.web.live import Hub
from dispatcher.web.one_file import FileResponse, OpenFile, close_aside, open_file
from dispatcher.web.performing import Performer
from dispatcher.web.route import WebRoute, demand_scope, query_of, read_arguments, trial_of
from dispatcher.web.work import Pools

#: Bytes of output in one answer, and where nothing else is asked for.
MOST_BYTES: Final = 1 << 20
USUAL_BYTES: Final = 256 << 10

#: Seconds after which a followed output that grows no more says that it is there.
_HEARTBEAT_S: Final = 5.0

_TRIAL: Final = "/experiments/{experiment}/trials/{trial}"
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class AskLog(Arguments, frozen=True):
    """Choice of a part of an output."""

    attempt: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The newest if not given.")
    ] = None
    rank: Annotated[
        Annotated[int, Meta(ge=0, le=100_000)], Meta(description="The node, of several.")
    ] = 0
    start: Annotated[int, Meta(description="The first byte; below 0 counted from the end.")] = (
        msgspec.field(name="from", default=0)
    )
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_BYTES)], Meta(description="Bytes at most.")
    ] = USUAL_BYTES
    follow: Annotated[bool, Meta(description="A stream of events until the attempt is over.")] = (
        False
    )


class AskFile(Arguments, frozen=True):
    """The attempt whose file is wanted."""

    attempt: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The newest if not given.")
    ] = None


class Outputs:
    """Answers these routes."""

    def __init__(
        self, performer: Performer, pools: Pools, hub: Hub, audit: AuditLog, keys: Keys
    ) -> None:
        self._performer = performer
        self._pools = pools
        self._hub = hub
        self._audit = audit
        self._keys = keys

    def routes(self) -> list[WebRoute]:
        """List them."""
        return [
            WebRoute(
                f"GET {_TRIAL}/log/{{stream}}", "What a trial wrote to stdout or stderr.",
                Scope.LOGS, self.log, AskLog, ("text/plain", "text/event-stream"),
            ),
            WebRoute(
                f"GET {_TRIAL}/files/{{path}}", "One file of a trial, to be saved.",
                Scope.LOGS, self.file, AskFile, ("application/octet-stream",),
            ),
        ]  # fmt: skip

    async def log(self, request: Request) -> Response:
        """Answer with a part of an output, or follow it."""
        identity = demand_scope(request, Scope.LOGS)
        stream, trial = str(request.path_params["stream"]), trial_of(request)
        if stream not in ("stdout", "stderr"):
            raise RequestRefused("no-page", "an output is stdout or stderr")
        wanted = read_arguments(AskLog, query_of(request, AskLog), texts=True)
        if wanted.rank:
            stream = f"{stream}.rank{wanted.rank}"
        folder = await self._performer.folder_of(request)
        self._audit.say("log", identity, experiment=folder.name, trial=trial, stream=stream)
        if wanted.follow:
            refuse_head(request)
            self._pools.follows.demand_room()
            held = self._hub.looking(folder, stream=True)
            await held.__aenter__()
            feed = _Feed(folder, trial, stream, wanted, asyncio.get_running_loop())
            may_stay = partial(self._keys.still_counts, identity)
            return EventStream(self._followed(feed, may_stay), held)
        span = _asked_range(request.headers.get("range", ""), wanted)
        part = await self._pools.files.run(read_part, folder, trial, stream, wanted, span)
        return _shown(part, span)

    async def _followed(self, feed: _Feed, may_stay: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield what comes, from a thread that reads, as long as the reader's token counts."""
        reading = asyncio.ensure_future(self._pools.follows.run(feed.run))
        said = time.monotonic()
        try:
            while not self._hub.closing and may_stay():
                try:
                    async with asyncio.timeout(STAY_S):
                        piece = await feed.queue.get()
                except TimeoutError:
                    if time.monotonic() - said >= _HEARTBEAT_S:
                        said = time.monotonic()
                        yield b": here\n\n"
                    if reading.done():
                        break
                    continue
                if piece is None:
                    break
                yield piece
        finally:
            feed.over = True
            while not feed.queue.empty():
                feed.queue.get_nowait()
            reading.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def file(self, request: Request) -> Response:
        """Answer with one file, as one that is saved and never shown."""
        identity = demand_scope(request, Scope.LOGS)
        trial, path = trial_of(request), str(request.path_params["path"])
        wanted = read_arguments(AskFile, query_of(request, AskFile), texts=True)
        why = fetching.why_refused(path)
        if why:
            raise UserError(f"{path[:200]!r} {why}")
        folder = await self._performer.folder_of(request)
        self._audit.say("file", identity, experiment=folder.name, trial=trial, path=path[:200])
        opened = await self._pools.files.run(open_file, folder, trial, path, wanted.attempt)
        name = quote(path.rpartition("/")[2], safe="")
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "Content-Length": str(opened.size),
        }
        if request.method == "HEAD":  # nothing is read that nobody gets
            close_aside(opened)
            return Response(None, 200, headers, "application/octet-stream")
        return FileResponse(self._pieces(opened), headers, opened)

    async def _pieces(self, opened: OpenFile) -> AsyncIterator[bytes]:
        while (piece := await self._pools.files.run(opened.next)) is not None:
            for at in range(0, len(piece), PIECE_BYTES):
                yield piece[at : at + PIECE_BYTES]


# -- one part of an output ---------------------------------------------------------------------


def _asked_range(text: str, wanted: AskLog) -> tuple[int, int] | None:
    """Read a Range header into first byte and number of bytes; None if there is none of ours."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    first, last = match.groups()
    if not first:
        if not int(last):
            raise RequestRefused("range", "the range is empty")
        return -int(last), min(wanted.limit, int(last))
    many = int(last) - int(first) + 1 if last else wanted.limit
    if many < 1:
        raise RequestRefused("range", "the range ends before it begins")
    return int(first), min(many, MOST_BYTES)


def read_part(
    folder: Path, trial: int, stream: str, wanted: AskLog, span: tuple[int, int] | None
) -> StreamPart:
    """Read a part of an output, see :func:`~dispatcher.attempt_files.log_stream.part`. Blocks.

    Args:
        folder: of the experiment.
        trial: its number.
        stream: ``stdout`` or ``stderr``.
        wanted: attempt, start and length.
        span: start and length (bytes) in place of those; None: as wanted.
    """
    start, limit = span or (wanted.start, wanted.limit)
    with ExperimentView(folder).attempts(trial) as located:
        shown = located.show_files(located.attempt(wanted.attempt), stream)
        with closing(shown.files) as files:
            sizes = {each.path: each.size for each in shown.listed.entries if not each.link}
            return log_stream.part(files, stream, sizes, start, limit)


def _shown(part: StreamPart, span: tuple[int, int] | None) -> Response:
    headers = {
        "Bequeath-From": str(part.start),
        "Bequeath-Size": str(part.size),
        "Accept-Ranges": "bytes",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    status = 200
    if span is not None:
        if not part.data:
            raise RequestRefused(
                "range",
                f"the output has {part.size} bytes",
                headers={"Content-Range": f"bytes */{part.size}"},
            )
        status = 206
        last = part.start + len(part.data) - 1
        headers["Content-Range"] = f"bytes {part.start}-{last}/{part.size}"
    return Response(part.data, status, headers, "text/plain; charset=utf-8")


# -- following -----------------------------------------------------------------------------------


class _ReaderGone(DispatcherError):
    """Raised in the thread that reads for a stream, once nobody gets it any more."""


class _Feed:
    """Reads an output in a thread, and hands it on piece by piece."""

    def __init__(
        self,
        folder: Path,
        trial: int,
        stream: str,
        wanted: AskLog,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._folder = folder
        self._trial = trial
        self._stream = stream
        self._wanted = wanted
        self._loop = loop
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(4)
        self.over = False

    def run(self) -> None:
        """Read until the attempt is over, or the reader has gone. Blocks."""
        try:
            with ExperimentView(self._folder).attempts(self._trial) as located:
                attempt = located.attempt(self._wanted.attempt)
                with closing(located.open_output(attempt)) as files:
                    self._hand_on(located, files)
            self._put(event("end", encoded({"reason": "over"})))
        except _ReaderGone:
            return
        except Exception as error:  # noqa: BLE001 - the top of a thread's work
            message = getattr(error, "message", "it cannot be read")
            self._put(event("end", encoded({"reason": "failed", "message": message})))
        finally:
            self._put(None)

    def _hand_on(self, located: LocatedTrial, files: AttemptFiles) -> None:
        sizes = {each.path: each.size for each in files.list(self._stream, most=10_000).entries}
        newest = sizes.pop(self._stream, 0)
        base = sum(sizes.values())
        start = self._wanted.start
        start = max(0, base + newest + start) if start < 0 else start
        taken = min(newest, max(0, start - base))
        at = base + taken
        for text, many in _texts(self._chunks(located, files, taken)):
            if text:
                self._put(event("text", encoded({"from": at, "text": text})))
            at += many

    def _chunks(self, located: LocatedTrial, files: AttemptFiles, taken: int) -> Iterator[bytes]:
        attempt = located.attempt(self._wanted.attempt)

        def is_over() -> bool:
            if self.over:
                raise _ReaderGone("nobody gets the stream")
            located.look_again()
            return located.over(attempt.number)

        every_s = log_stream.LOOK_EVERY_S if attempt.is_here else 1.0
        for chunk in log_stream.follow(
            files, self._stream, is_over, look_every_s=every_s, taken=taken
        ):
            for at in range(0, len(chunk), PIECE_BYTES):
                yield chunk[at : at + PIECE_BYTES]

    def _put(self, piece: bytes | None) -> None:
        """Hand a piece on; waits while the reader is slow."""
        done = asyncio.run_coroutine_threadsafe(self.queue.put(piece), self._loop)
        while not done.done() and not self.over:
            concurrent.futures.wait([done], timeout=1.0)
        done.cancel()


def _texts(chunks: Iterator[bytes]) -> Iterator[tuple[str, int]]:
    """Yield texts with the bytes that they stand for; a letter that is cut waits for its rest."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    held = 0
    for chunk in chunks:
        text = decoder.decode(chunk)
        left = len(decoder.getstate()[0])
        yield text, held + len(chunk) - left
        held = left
    yield decoder.decode(b"", final=True), held
