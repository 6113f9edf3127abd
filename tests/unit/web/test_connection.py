"""Each question has its time: whoever asks slowly, or nothing, holds no connection for long."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from dispatcher.web import connection
from dispatcher.web.connection import BoundedConnection

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
UNREAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx"

#: A bound on a hang, not a measure of speed.
PATIENCE_S = 30.0


def with_server(act: Callable[[int], Awaitable[None]]) -> None:
    """Serve in this loop as long as an act lasts."""

    async def run() -> None:
        config = uvicorn.Config(
            PlainTextResponse("here"), http=BoundedConnection, ws="none", lifespan="off",
            log_config=None, timeout_keep_alive=60,
        )  # fmt: skip
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving = asyncio.create_task(server.serve([listening]))
            while not server.started:
                await asyncio.sleep(0.01)
            try:
                await act(listening.getsockname()[1])
            finally:
                server.should_exit = True
                await serving

    asyncio.run(run())


@pytest.mark.parametrize("question,more", [(HEAD, b"G"), (UNREAD, b"x"), (HEAD, b"")])
def test_not_the_first_question_alone_has_its_time(
    question: bytes, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: bytes of a second question, or of a body that nobody reads, are time for ever."""
    monkeypatch.setattr(connection, "NEXT_HEADERS_S", 1.0)

    async def act(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(question)
        assert (await reader.read(12)) == b"HTTP/1.1 200"

        async def dribble() -> None:
            while more:
                writer.write(more)
                await asyncio.sleep(0.1)

        dribbling = asyncio.create_task(dribble())
        async with asyncio.timeout(PATIENCE_S):
            try:
                while await reader.read(65_536):
                    pass
            except ConnectionError:
                pass  # cut off
        dribbling.cancel()
        writer.close()

    with_server(act)


def test_one_who_asks_in_time_may_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: a connection has one time for all of its questions."""
    monkeypatch.setattr(connection, "HEADERS_S", 2.0)
    monkeypatch.setattr(connection, "NEXT_HEADERS_S", 2.0)

    async def act(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(8):
            writer.write(HEAD)
            async with asyncio.timeout(PATIENCE_S):
                assert (await reader.readuntil(b"here"))[:12] == b"HTTP/1.1 200"
            await asyncio.sleep(0.4)
        writer.close()

    with_server(act)
