"""Connections with bounds: one that asks nothing, and one that reads nothing, are closed."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Connections at once; further ones get 503, and beyond the second number none.
MOST_CONNECTIONS: Final = 1_000
_MOST_OPEN: Final = 1_200

#: Seconds until the headers of a first request are there, and of the next one: browsers keep a
#: connection that has nothing to ask for a while.
HEADERS_S: Final = 15.0
NEXT_HEADERS_S: Final = 45.0

#: Seconds for which a full buffer (64 KiB) may stay full.
_READING_S: Final = 30.0

#: Bytes of a request's headers.
MOST_HEADER_BYTES: Final = 32 << 10


class BoundedConnection(H11Protocol):
    """One connection."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._asks_until: asyncio.TimerHandle | None = None
        self._reads_until: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it, if there is room."""
        super().connection_made(transport)
        if len(self.connections) > _MOST_OPEN:
            transport.abort()
            return
        self._asks_until = self.loop.call_later(HEADERS_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take what the peer sends. Not each byte gives it more time, but each whole question."""
        super().data_received(data)
        self._count_time()

    def on_response_complete(self) -> None:
        """Wait for the next question; what comes of the body of the last one is none."""
        super().on_response_complete()
        self._count_time()

    def _count_time(self) -> None:
        answers = self.cycle is not None and not self.cycle.response_complete
        if answers and self._asks_until is not None:
            self._asks_until.cancel()
            self._asks_until = None
        elif not answers and self._asks_until is None:
            self._asks_until = self.loop.call_later(NEXT_HEADERS_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        for timer in (self._asks_until, self._reads_until):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Give the peer some time to read: the buffer is full."""
        super().pause_writing()
        self._reads_until = self.loop.call_later(_READING_S, self.transport.abort)

    def resume_writing(self) -> None:
        """The peer reads."""
        super().resume_writing()
        if self._reads_until is not None:
            self._reads_until.cancel()
            self._reads_until = None
