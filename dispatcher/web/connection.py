"""Connections with bounds: one that asks nothing, and one that reads nothing, are closed."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Connections at once; further ones get 503, and beyond the second number none.
MOST_CONNECTIONS: Final = 1_000
_MOST_OPEN: Final = 1_200

#: Seconds until the headers of a first request are there.
_HEADERS_S: Final = 15.0

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
        self._asks_until = self.loop.call_later(_HEADERS_S, self._give_up_asking)

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

    def _give_up_asking(self) -> None:
        if getattr(self, "cycle", None) is None:
            self.transport.abort()
