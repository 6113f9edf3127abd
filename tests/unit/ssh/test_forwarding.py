"""Who connects to a port of a machine costs us threads: so many, and no more."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any, cast

import pytest

from dispatcher.ssh import forwarding
from dispatcher.ssh.forwarding import ReverseForwards

WAIT_S = 120.0


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


def test_connections_beyond_the_bound_are_closed_and_others_take_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarding, "MOST_CONNECTIONS", 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        forwards = ReverseForwards(cast("Any", None))
        forwards._targets[7000] = server.getsockname()

        def come() -> Channel:
            channel = Channel()
            forwards._accept(channel, None, ("127.0.0.1", 7000))
            return channel

        ends, kept = [], []
        for _ in range(2):
            kept.append(come())
            ends.append(server.accept()[0])
        assert come().gone.wait(WAIT_S)
        assert not any(channel.closed for channel in kept)
        kept[0].close()
        assert ends[0].recv(1) == b"", "it is carried no more"
        ends[0].close()
        give_up = time.monotonic() + WAIT_S
        while forwards._served > 1 and time.monotonic() < give_up:
            time.sleep(0.01)
        kept.append(come())
        ends.append(server.accept()[0])
        for channel, end in zip(kept, ends, strict=True):
            channel.close()
            end.close()
        for thread in threading.enumerate():
            if thread.name.startswith("ssh port"):
                thread.join(WAIT_S)
        assert forwards._served == 0
