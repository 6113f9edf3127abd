"""Requests that come again: by its key each is carried out once, and the answer is kept a while."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.responses import Response

from dispatcher.errors import DispatcherError, UserError
from dispatcher.web.faults import answer_to

#: Seconds for which an answer is kept.
KEPT_S: Final = 86_400.0


class _Kept:
    """The answer to one request, once it is there."""

    def __init__(self, asked: str, at: float, outcome: asyncio.Future[Response]) -> None:
        self.asked = asked
        self.at = at
        self.outcome = outcome
        self.size = 0


class RepeatedRequests:
    """Keeps answers by key: a day, and no more than its bounds. In the event loop's thread.

    Args:
        most: answers that are kept.
        most_bytes: of their bodies together; the newest one is kept whatever its size.
        clock: seconds that only grow.
    """

    def __init__(
        self, most: int, most_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._clock = clock
        self._kept: OrderedDict[tuple[str, ...], _Kept] = OrderedDict()
        self.bytes = 0  #: of all bodies that are kept

    def __len__(self) -> int:
        return len(self._kept)

    async def once(
        self, place: tuple[str, ...], asked: str, act: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Carry a request out, unless it was already: then it gets the same answer again.

        Args:
            place: its key, and the one whose key it is.
            asked: what stands for all that is asked for.
            act: carries it out; one that fails may be tried again.

        Raises:
            UserError: the key belongs to another request.
            DispatcherError: as ``act``.
        """
        self._make_room()
        kept = self._kept.get(place)
        if kept is None:
            return await self._first(place, asked, act)
        if kept.asked != asked:
            raise UserError(
                "this Idempotency-Key belongs to another request", hint="take a new one"
            )
        first = await asyncio.shield(kept.outcome)
        headers = {"Idempotency-Replayed": "true"}
        return Response(bytes(first.body), first.status_code, headers, "application/json")

    async def _first(
        self, place: tuple[str, ...], asked: str, act: Callable[[], Awaitable[Response]]
    ) -> Response:
        outcome = asyncio.get_running_loop().create_future()
        kept = self._kept[place] = _Kept(asked, self._clock(), outcome)
        try:
            response = await act()
        except DispatcherError as error:
            self._kept.pop(place, None)  # it may be tried again
            outcome.set_result(answer_to(error))
            raise
        except BaseException:
            self._kept.pop(place, None)
            outcome.cancel()
            raise
        outcome.set_result(response)
        kept.size = len(bytes(response.body))
        self.bytes += kept.size
        self._make_room()
        return response

    def _make_room(self) -> None:
        """Forget answers that are old or too many, the oldest first; what is under way stays."""
        now = self._clock()
        newest = next(reversed(self._kept), None)
        for place, one in list(self._kept.items()):
            is_old = now - one.at >= KEPT_S
            fits = len(self._kept) <= self._most and self.bytes <= self._most_bytes
            if not is_old and (fits or place == newest):
                return
            if one.outcome.done():
                del self._kept[place]
                self.bytes -= one.size
