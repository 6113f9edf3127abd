"""A command that one talks to, and what it complains of when it ends too early."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.ssh.errors import ConnectionLost
from dispatcher.ssh.started import Started


class Channel:
    """Says this on stderr, piece by piece, and nothing on stdout."""

    def __init__(self, *stderr: bytes) -> None:
        self.stderr = list(stderr)

    def exec_command(self, command: str) -> None: ...

    def settimeout(self, limit_s: float | None) -> None: ...

    def sendall(self, data: bytes) -> None: ...

    def recv(self, most: int) -> bytes:
        return b""

    def recv_stderr(self, most: int) -> bytes:
        return self.stderr.pop(0) if self.stderr else b""

    def recv_stderr_ready(self) -> bool:
        return False


@pytest.mark.parametrize(
    "said",
    [
        (b"MARK 7\nsh: no-such-python: not found\n",),
        (b"MARK 7\n", b"sh: no-such-python: not found\n"),
        (b"MARK 7\nsh: no-such-py", b"thon: not found\n"),
    ],
    ids=["at once", "after the end of stdout", "in parts"],
)
def test_its_complaint_is_heard_whenever_it_comes(said: tuple[bytes, ...]) -> None:
    """Mutation: what came with the first line, or has not come yet, is left out."""
    link: Any = SimpleNamespace(label="far", is_alive=lambda: True, ends_within=lambda s: False)
    started = Started(link, Channel(*said))
    launch: Any = SimpleNamespace(line=b"exec it\n", mark=b"MARK ")
    started.begin(launch, None, 60.0)
    assert started.pid == 7
    with pytest.raises(ConnectionLost, match="sh: no-such-python: not found"):
        started.line(time.monotonic() + 60)
