"""A line between a client and a server on the loopback that can be cut and mended."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from tests.support.ports import free_port


class Relay:
    """Hands bytes on between whoever connects to ``port`` and a server.

    ``cut`` resets what is open and refuses what comes; ``cut_after`` does so in the middle of
    a stream, when that many bytes have passed in either direction.
    """

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._left: int | None = None
        self.cuts = 0
        self.port = free_port()
        self.mend()

    def mend(self) -> None:
        """Take connections again, at the same port."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Refuse and reset everything."""
        with self._lock:
            listener, self._listener = self._listener, None
            open_now, self._open = self._open, set()
            self.cuts += 1
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for one in open_now:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut_after(self, nbytes: int) -> None:
        """Cut when that many further bytes have passed."""
        self._left = nbytes

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                return
            with self._lock:
                if self._listener is not listener:
                    client.close()
                    server.close()
                    return
                self._open |= {client, server}
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while piece := source.recv(1 << 16):
                with self._lock:
                    left = None if self._left is None else self._left - len(piece)
                    self._left = None if left is not None and left < 0 else left
                if left is not None and left < 0:
                    self.cut()
                    break
                target.sendall(piece)
        except OSError:
            pass
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
        source.close()


@contextlib.contextmanager
def relayed(server_port: int) -> Iterator[Relay]:
    """A line while the block lasts."""
    relay = Relay(server_port)
    try:
        yield relay
    finally:
        relay.cut()
