"""Who connects to a port of a machine costs us threads: so many, and no more."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from dispatcher.ssh import forwarding
from dispatcher.ssh.forwarding import ReverseForwards
from tests.support.processes import wait_until

WAIT_S = 120.0


class Link:
    """A connection to a machine that listens at whatever port it is asked for, from 7000 on."""

    def __init__(self) -> None:
        self.ports = 7000
        self.accept: Any = None

    @contextmanager
    def asking(self) -> Iterator[Link]:
        yield self

    def request_port_forward(self, _address: str, _port: int, handler: Any) -> int:
        self.accept = handler
        self.ports += 1
        return self.ports - 1

    def come(self, port: int) -> Channel:
        """Somebody connects to a port."""
        channel = Channel()
        self.accept(channel, None, ("127.0.0.1", port))
        return channel


class Channel:
    """A connection that says nothing until it is closed."""

    def __init__(self) -> None:
        self.gone = threading.Event()

    @property
    def closed(self) -> bool:
        return self.gone.is_set()

    def recv(self, _most: int) -> bytes:
        self.gone.wait(WAIT_S)
        return b""

    def shutdown_write(self) -> None:
        pass

    def close(self) -> None:
        self.gone.set()


def end_of(server: socket.socket, channel: Channel) -> socket.socket | None:
    """Where a connection that came just now leads to; None if it was refused."""
    give_up = time.monotonic() + WAIT_S
    while not channel.closed and time.monotonic() < give_up:
        if select.select([server], [], [], 0.01)[0]:
            return server.accept()[0]
    return None


@pytest.mark.parametrize("why", ["no such port", "too many", "nobody there"])
def test_a_connection_that_was_refused_takes_nobodys_place(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Agents try a port that is there no more, and anybody may scan the ports of a machine.
    Mutation: each of these counts for ever, until no agent gets through any more."""
    monkeypatch.setattr(forwarding, "MOST_CONNECTIONS", 2)
    link = Link()
    forwards = ReverseForwards(cast("Any", link))
    with socket.create_server(("127.0.0.1", 0)) as server:
        way = forwards.add(server.getsockname())
        kept = []

        def come() -> bool:
            channel = link.come(way)
            end = end_of(server, channel)
            if end is not None:
                kept.append((channel, end))
            return end is not None

        port, most = way + 1, 0
        if why == "too many":
            port, most = way, 2
            assert come()
            assert come()
        elif why == "nobody there":
            port = forwards.add("/nowhere/at/all")
        for _ in range(5):
            channel = link.come(port)
            assert channel.gone.wait(WAIT_S)
        wait_until(lambda: forwards.served == most, "those that were refused are not served")
        hang_up(kept)
        assert come()
        assert come(), "there are as many places as there were"
        assert not come()
        hang_up(kept)
        assert forwards.served == 0


def hang_up(kept: list[tuple[Channel, socket.socket]]) -> None:
    """All of them, and wait until nobody is served any more."""
    for channel, end in kept:
        channel.close()
        end.close()
    kept.clear()
    for thread in threading.enumerate():
        if thread.name.startswith("ssh port"):
            thread.join(WAIT_S)


def test_connections_beyond_the_bound_are_closed_and_others_take_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarding, "MOST_CONNECTIONS", 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = Link()
        forwards = ReverseForwards(cast("Any", link))
        way = forwards.add(server.getsockname())
        kept: list[tuple[Channel, socket.socket]] = []

        def come() -> Channel:
            channel = link.come(way)
            end = end_of(server, channel)
            if end is not None:
                kept.append((channel, end))
            return channel

        first, second = come(), come()
        assert come().closed
        assert [channel for channel, _ in kept] == [first, second]
        assert not first.closed
        assert not second.closed
        first.close()
        end = kept.pop(0)[1]
        end.settimeout(WAIT_S)
        assert end.recv(1) == b"", "it is carried no more"
        end.close()
        wait_until(lambda: forwards.served == 1, "it leaves its place")
        third = come()
        assert [channel for channel, _ in kept] == [second, third]
        hang_up(kept)
        assert forwards.served == 0
