"""A socket that ends by itself when nothing has come from the other side for too long."""

from __future__ import annotations

import errno
import socket
import threading
import time
from typing import Any


class SilentPeer(ConnectionError):
    """Raised when the other side has not been heard for longer than was agreed."""


class WatchedSocket:
    """The socket of a paramiko transport, around a socket or a channel of a jump host.

    paramiko itself waits for ever on a peer that has gone without a word (a cut link, a power
    loss), and its keep-alives are not answered. It reads with a timeout of 0.1 s in a thread
    of its own, so this is where silence is noticed, if the peer is asked something now and then
    that it answers.
    """

    def __init__(self, inner: Any, silent_s: float) -> None:
        self._inner = inner
        self._silent_s = silent_s
        self.reason = ""  # why it was ended from here
        self._heard = time.monotonic()
        self._closing = threading.Lock()
        self._closed = False  # paramiko looks at it by this name

    def recv(self, size: int) -> bytes:
        """Bytes; raises SilentPeer instead of yet another timeout after ``silent_s``."""
        try:
            data: bytes = self._inner.recv(size)
        except socket.timeout:  # no TimeoutError before Python 3.10
            if self.silence_s() > self._silent_s:
                self.reason = f"nothing heard for {self._silent_s:.0f} s"
                # paramiko's thread dies of socket errors that bear no number.
                raise SilentPeer(errno.ETIMEDOUT, self.reason) from None
            raise
        self._heard = time.monotonic()
        return data

    def silence_s(self) -> float:
        """Seconds since the last byte."""
        return time.monotonic() - self._heard

    def send(self, data: bytes) -> int:
        """Do as a socket does."""
        sent: int = self._inner.send(data)
        return sent

    def settimeout(self, seconds: float | None) -> None:
        """Do as a socket does."""
        self._inner.settimeout(seconds)

    def getpeername(self) -> Any:
        """Do as a socket does."""
        return self._inner.getpeername()

    def close(self) -> None:
        """Close, once; wakes the reader."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        if isinstance(self._inner, socket.socket):
            try:
                self._inner.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # not connected any more
        try:
            self._inner.close()
        except (OSError, EOFError):
            pass  # a channel through a jump host says goodbye, and its own line may be gone
