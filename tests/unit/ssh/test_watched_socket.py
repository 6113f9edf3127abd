"""The socket below a connection, when what is below it is gone already."""

from __future__ import annotations

from typing import cast

import paramiko
import pytest

from trial_runtime.tunnel.watched_socket import WatchedSocket


class GoneLine:
    """A channel through a jump host whose own connection has ended."""

    closed = 0

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def settimeout(self, limit_s: float | None) -> None:
        pass

    def close(self) -> None:
        self.closed += 1
        raise self.error


@pytest.mark.parametrize("error", [EOFError, OSError])
def test_closing_what_is_gone_is_quiet(error: type[Exception]) -> None:
    line = GoneLine(error)
    watched = WatchedSocket(cast("paramiko.Channel", line), 5.0)
    watched.close()
    watched.close()
    assert line.closed == 1
