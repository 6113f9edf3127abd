"""A server that lets us in and transfers no files."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from trial_runtime.weights.remote import sftp

pytest.importorskip("paramiko")


class Client:
    """Logged in. Its server says no to SFTP, or nothing at all."""

    def __init__(self, *, silent: bool) -> None:
        self.silent = silent
        self.closed = threading.Event()

    def open_sftp(self) -> Any:
        if self.silent and not self.closed.wait(120):
            raise AssertionError("nobody gave up")
        raise EOFError

    def close(self) -> None:
        self.closed.set()


@pytest.mark.parametrize("silent", [False, True])
def test_its_connection_is_given_back(silent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each try leaves one behind, with its thread."""
    client = Client(silent=silent)
    monkeypatch.setattr(sftp, "connected", lambda _host, _options: client)
    monkeypatch.setattr(sftp, "ANSWER_S", 0.05 if silent else 60.0)
    with pytest.raises(EOFError):
        sftp.checked_sftp()("nas", skip_instance_cache=True)
    assert client.closed.is_set()
