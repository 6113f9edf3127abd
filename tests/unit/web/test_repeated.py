"""Requests that come again: once each, and what is kept of them is bounded."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import Response

from dispatcher.errors import PassingBackendError, UserError
from dispatcher.web import repeated
from dispatcher.web.repeated import RepeatedRequests


class Script:
    """One who asks, and counts what was carried out."""

    def __init__(self, most: int = 10, most_bytes: int = 10_000) -> None:
        self.now = 0.0
        self.done: list[str] = []
        self.requests = RepeatedRequests(most, most_bytes, lambda: self.now)

    async def ask(self, key: str, size: int = 1, asked: str = "a") -> Response:
        async def act() -> Response:
            self.done.append(key)
            return Response(b"x" * size)

        return await self.requests.once((key,), asked, act)


def test_the_same_request_gets_the_same_answer() -> None:
    async def scene() -> None:
        script = Script()
        await script.ask("k", 7)
        again = await script.ask("k", 7)
        assert (again.body, again.headers["Idempotency-Replayed"]) == (b"x" * 7, "true")
        assert script.done == ["k"]
        with pytest.raises(UserError, match="belongs to another request"):
            await script.ask("k", asked="b")

    asyncio.run(scene())


def test_answers_are_bounded_by_their_bytes() -> None:
    """Mutation: a thousand answers of a model, of a mebibyte each, stay for a day."""

    async def scene() -> None:
        script = Script(most_bytes=2_500)
        for number in range(5):
            await script.ask(str(number), 1_000)
        assert (len(script.requests), script.requests.bytes) == (2, 2_000)
        await script.ask("large", 9_000)  # the newest stays whatever its size
        assert (len(script.requests), script.requests.bytes) == (1, 9_000)
        await script.ask("large", 9_000)
        assert script.done.count("large") == 1
        await script.ask("next", 1)
        assert (len(script.requests), script.requests.bytes) == (1, 1)

    asyncio.run(scene())


def test_answers_are_bounded_by_their_number_and_their_age() -> None:
    """Mutation: one that is asked for again is forgotten to make room for itself."""

    async def scene() -> None:
        script = Script(most=3)
        for number in range(3):
            await script.ask(str(number))
        await script.ask("0")
        assert script.done == ["0", "1", "2"]
        await script.ask("3")
        await script.ask("0")
        assert script.done == ["0", "1", "2", "3", "0"]
        script.now = repeated.KEPT_S
        await script.ask("0")
        assert script.done.count("0") == 3
        assert (len(script.requests), script.requests.bytes) == (1, 1)

    asyncio.run(scene())


def test_what_is_under_way_is_not_carried_out_twice() -> None:
    """Mutation: it is forgotten where others need the room."""

    async def scene() -> None:
        script = Script(most=1)
        enough = asyncio.Event()

        async def slow() -> Response:
            script.done.append("slow")
            await enough.wait()
            return Response(b"slow")

        first = asyncio.create_task(script.requests.once(("slow",), "a", slow))
        await asyncio.sleep(0)
        await script.ask("other")
        second = asyncio.create_task(script.requests.once(("slow",), "a", slow))
        await asyncio.sleep(0)
        enough.set()
        assert [bytes((await one).body) for one in (first, second)] == [b"slow", b"slow"]
        assert script.done == ["slow", "other"]

    asyncio.run(scene())


def test_what_failed_may_be_tried_again() -> None:
    async def scene() -> None:
        script = Script()

        async def fail() -> Response:
            raise PassingBackendError("the head is away")

        for _ in range(2):
            with pytest.raises(PassingBackendError):
                await script.requests.once(("k",), "a", fail)
        await script.ask("k")
        assert script.done == ["k"]

    asyncio.run(scene())
