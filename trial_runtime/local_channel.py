"""Frames over a Unix socket, between a trial's process and its agent on the same host.

A plain socket rather than ZeroMQ (docs/decisions/0013): importing pyzmq would cost every fresh
trial more than all the rest of us, and its context two threads that each fork has to make anew.
What was sent is with the kernel, so it reaches the agent even if we are killed next.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import Final

#: Addresses of this kind are ``unix:`` and a path.
SCHEME: Final = "unix:"

#: Each frame is its length in bytes and then its bytes.
LENGTH: Final = struct.Struct(">I")

_CHUNK = 1 << 16
_TIMEVAL = struct.Struct("@ll")


class LocalChannel:
    """One connection; not thread-safe.

    Args:
        address: ``unix:PATH``, where the agent listens.
        hello: the first frame: the routing id, with the secret of the attempt.
        patience_s: longest time to connect, and to get rid of one frame.

    Raises:
        OSError: nobody listens there.
    """

    def __init__(self, address: str, hello: str, *, patience_s: float) -> None:
        self._received = bytearray()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # The kernel's own limit: Python's would poll before each call.
            patience = _TIMEVAL.pack(int(patience_s), int(patience_s % 1 * 1e6))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
            self._socket.connect(address.removeprefix(SCHEME))
            self.send(hello.encode())
        except BaseException:
            self._socket.close()
            raise

    @classmethod
    def over(cls, connected: socket.socket) -> LocalChannel:
        """A channel over a socket that is connected already."""
        channel = cls.__new__(cls)
        channel._received = bytearray()
        channel._socket = connected
        return channel

    def send(self, payload: bytes) -> None:
        """Send a frame. Blocks while the agent takes nothing in.

        Raises:
            OSError: the agent is gone, or took nothing in for ``patience_s``.
        """
        self._socket.sendall(LENGTH.pack(len(payload)) + payload)

    def receive(self, timeout_s: float | None) -> bytes | None:
        """The next frame, or None after ``timeout_s`` (0: without waiting; None: no limit).

        Raises:
            OSError: the agent is gone.
        """
        give_up = time.monotonic() + timeout_s if timeout_s else 0.0
        flags = socket.MSG_DONTWAIT if timeout_s is not None else 0
        while True:
            frame = self._frame()
            if frame is not None:
                return frame
            if timeout_s and not self._readable(give_up - time.monotonic()):
                return None
            try:
                chunk = self._socket.recv(_CHUNK, flags)
            except BlockingIOError:
                if not timeout_s:
                    return None
                continue
            if not chunk:
                raise ConnectionResetError("the agent closed the connection")
            self._received += chunk

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _readable(self, timeout_s: float) -> bool:
        poll = select.poll()  # not select: a trial may have thousands of descriptors
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout_s * 1000)))

    def _frame(self) -> bytes | None:
        if len(self._received) < LENGTH.size:
            return None
        end = LENGTH.size + LENGTH.unpack_from(self._received)[0]
        if len(self._received) < end:
            return None
        frame = bytes(self._received[LENGTH.size : end])
        del self._received[:end]
        return frame
