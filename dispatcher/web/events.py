"""Streams of events (SSE) and answers that wait: what changed in an experiment, as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from dispatcher.errors import DispatcherError, ExperimentNotFound
from dispatcher.operations.faults import problem_of
from dispatcher.web.answering import encoded
from dispatcher.web.faults import RequestRefused
from dispatcher.web.live import LOOK_S, Hub, Pushed, Watch, renewed

#: Seconds after which a stream that has nothing to say says that it is there.
HEARTBEAT_S: Final = 15.0

#: Seconds within which a stream of somebody whose token counts no more ends.
STAY_S: Final = 1.0

#: Seconds for which an answer may wait.
MOST_WAIT_S: Final = 60.0

#: Milliseconds after which a browser asks again when a stream breaks.
_RETRY_MS: Final = 2_000


def event(name: str, data: bytes, ident: str = "") -> bytes:
    """Return one event of a stream.

    Args:
        name: by which a page listens.
        data: JSON, which has no line ends.
        ident: the id from which a stream goes on; empty for none.
    """
    head = f"id: {ident}\n" if ident else ""
    return f"{head}event: {name}\ndata: ".encode() + data + b"\n\n"


def refuse_head(request: Request) -> None:
    """Raise ``RequestRefused`` for a HEAD: nobody would read what a stream holds a place for."""
    if request.method == "HEAD":
        text = "a stream has no end, and a HEAD no body"
        raise RequestRefused("method", text, hint="use GET", headers={"Allow": "GET"})


class EventStream(StreamingResponse):
    """A stream that lets go of what it holds however it ends."""

    def __init__(
        self, events: AsyncIterator[bytes], held: AbstractAsyncContextManager[Any] | None = None
    ) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, headers=headers, media_type="text/event-stream")
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, until one of both sides has enough."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._held is not None:
                await self._held.__aexit__(None, None, None)


async def events_of(
    watch: Watch, hub: Hub, cursor: str, may_stay: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield the events of one stream.

    Args:
        watch: looks at the experiment.
        hub: says when the server ends.
        cursor: what the reader has; empty if nothing.
        may_stay: whether the reader's token still counts; asked each :data:`STAY_S`.
    """
    yield f"retry: {_RETRY_MS}\n\n".encode()
    told, was_gone = 0, False
    renewals = watch.renewals
    checked = time.monotonic()
    while not hub.closing:
        if not may_stay():
            return
        if watch.error is not None:
            yield _ended(watch.error)
            return
        kept = watch.kept_step(cursor)
        if watch.renewals != renewals:
            renewals = watch.renewals
            yield event("changes", renewed(cursor).body, cursor)
        elif kept is not None:
            cursor = kept.cursor
            yield event("changes", kept.body, cursor)
        elif cursor != watch.cursor and watch.cursor:
            step = await _caught_up(watch, cursor)
            if step is not None and (step.cursor != cursor or step.anew):
                cursor = step.cursor
                yield event("changes", step.body, cursor)
        said = watch.announced
        if said.number != told:
            told = said.number
            yield event("standing", said.standing)
            if bool(said.gone) != was_gone:
                was_gone = bool(said.gone)
                yield event("gone", said.gone) if was_gone else event("back", b"{}")
        if time.monotonic() - checked >= HEARTBEAT_S:
            checked = time.monotonic()
            yield b": here\n\n"
        is_new = watch.kept_step(cursor) is not None or watch.renewals != renewals
        if not is_new and watch.announced.number == told:
            await watch.wait(STAY_S)


async def _caught_up(watch: Watch, cursor: str) -> Pushed | None:
    """Return what changed behind a cursor; None if it cannot be read just now."""
    try:
        return await watch.step_from(cursor)
    except DispatcherError as error:
        watch.error = watch.error or (error if isinstance(error, ExperimentNotFound) else None)
        await asyncio.sleep(1.0)
        return None


def _ended(error: DispatcherError) -> bytes:
    deleted = isinstance(error, ExperimentNotFound)
    facts = {"since": round(time.time(), 3), "deleted": deleted, "error": problem_of(error)}
    return event("gone", encoded(facts))


async def changes_after(
    watch: Watch, hub: Hub, cursor: str, wait_s: float, may_stay: Callable[[], bool]
) -> Pushed:
    """Return what changed behind a cursor; wait a while if nothing did.

    Args:
        watch: looks at the experiment.
        hub: says when the server ends.
        cursor: of the answer before.
        wait_s: seconds to wait at most.
        may_stay: whether the reader's token still counts; asked each :data:`STAY_S`.

    Raises:
        RequestRefused: it does not.
        DispatcherError: the cursor is none of ours, or the experiment cannot be read.
    """
    renewals = watch.renewals
    until = time.monotonic() + min(wait_s, MOST_WAIT_S)
    while True:
        if watch.error is not None:
            raise watch.error
        step = await watch.step_from(cursor)
        if not may_stay():
            raise RequestRefused("no-token", "the token does not count any more")
        if watch.renewals != renewals:
            return renewed(step.cursor)
        left = until - time.monotonic()
        if not step.is_empty or left <= 0 or hub.closing:
            return step
        cursor = step.cursor
        if watch.cursor == cursor:
            await watch.wait(min(left, STAY_S))
        else:
            await asyncio.sleep(min(left, LOOK_S))
