"""The Unix socket at which trials connect: bytes in, frames out, everything bounded.

It knows no attempts and no secrets;
:mod:`trial_runtime.agent.trials.endpoint` decides who may speak.
"""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Generator, Iterator
from typing import Any

from trial_runtime.local_channel import LENGTH

#: Bytes taken from one connection in one turn of the loop: a chatty trial must not hold up the
#: others, nor exits and heartbeats.
READ_BYTES = 1 << 14

#: A frame that is longer than a read is taken in larger pieces.
LONG_READ_BYTES = 1 << 18

#: Bytes that may wait for a peer that does not read; beyond, it is hung up on.
MAX_UNSENT_BYTES = 16 << 20

BACKLOG = 1024


class FrameTooLong(Exception):
    """The length that a frame claims is above the limit; nothing was allocated for it."""


class Peer:
    """One connection. ``owner`` is set by the user of the listener; None until then."""

    __slots__ = ("_deaf", "_listener", "_received", "_unsent", "closed", "owner", "socket")

    def __init__(self, listener: Listener, connection: socket.socket) -> None:
        self._listener = listener
        self._received = bytearray()
        self._unsent = bytearray()
        self.socket = connection
        self.owner: Any = None
        self.closed = False
        self._deaf = False  # it has hung up; frames it sent before may still be unread

    def send(self, payload: bytes) -> bool:
        """Send a frame without waiting; returns false if the peer is gone or never reads."""
        if self.closed or self._deaf:
            return False
        frame = LENGTH.pack(len(payload)) + payload
        if not self._unsent:
            try:
                sent = self.socket.send(frame)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._deaf = True
                return False
            if sent == len(frame):
                return True
            frame = frame[sent:]
            self._listener._want_to_write(self, True)
        self._unsent += frame
        if len(self._unsent) > MAX_UNSENT_BYTES:
            self.close()
            return False
        return True

    def close(self) -> None:
        """Hang up. Idempotent."""
        if not self.closed:
            self.closed = True
            self._listener._drop(self)
            self.socket.close()

    def _flush(self) -> None:
        try:
            sent = self.socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            self._deaf = True
            sent = len(self._unsent)
        del self._unsent[:sent]
        if not self._unsent:
            self._listener._want_to_write(self, False)

    def _read(self) -> int | None:
        """Take in a part of what is there: how many bytes, or None at the end."""
        try:
            chunk = self.socket.recv(LONG_READ_BYTES if self._received else READ_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            return None
        self._received += chunk
        return len(chunk) or None

    def _frames(self, limit: int) -> Iterator[bytes]:
        received = self._received
        while len(received) >= LENGTH.size and not self.closed:
            (length,) = LENGTH.unpack_from(received)
            if length > limit:
                raise FrameTooLong(f"a frame of {length:,} bytes; {limit:,} are allowed")
            end = LENGTH.size + length
            if len(received) < end:
                return
            frame = bytes(received[LENGTH.size : end])
            del received[:end]  # before the yield: what it leads to may read on
            yield frame


class Listener:
    """Accepts connections at ``path`` and reads frames of at most ``limit`` bytes from them.

    Args:
        path: of the socket, in a folder that is ours alone; an old one there is replaced.
        limit: longest frame in bytes.
        most: connections at a time; more wait in the kernel's line.
    """

    def __init__(self, path: str, *, limit: int, most: int) -> None:
        self._limit = limit
        self._most = most
        self._peers: set[Peer] = set()
        self._selector = selectors.DefaultSelector()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        if os.path.exists(path):
            os.unlink(path)
        self._socket.bind(path)
        os.chmod(path, 0o600)
        self._socket.listen(BACKLOG)
        self._accepting = False
        self._accept_if_room()

    def fileno(self) -> int:
        """Readable when :meth:`receive` has something to do."""
        return self._selector.fileno()

    def receive(self) -> Iterator[tuple[Peer, bytes | FrameTooLong | None]]:
        """The frames that have arrived, in order; or a frame too long; None: a peer hung up."""
        for key, mask in self._selector.select(0):
            peer = key.data
            if peer is None:
                yield from self._accept()
                continue
            if mask & selectors.EVENT_WRITE:
                peer._flush()
            if mask & selectors.EVENT_READ:
                yield from self._read(peer)

    def drain(self, peer: Peer) -> Iterator[tuple[Peer, bytes | FrameTooLong | None]]:
        """All unread frames of a peer whose process is gone."""
        more: int | None = 1
        while more and not peer.closed:
            more = yield from self._read(peer)

    def close(self) -> None:
        """Hang up on all, and listen no more."""
        for peer in list(self._peers):
            peer.close()
        self._selector.close()
        self._socket.close()

    def _read(
        self, peer: Peer
    ) -> Generator[tuple[Peer, bytes | FrameTooLong | None], None, int | None]:
        if peer.closed:
            return None
        taken = peer._read()
        try:
            for frame in peer._frames(self._limit):
                yield peer, frame
        except FrameTooLong as error:
            yield peer, error
            peer.close()
        if taken is None and not peer.closed:
            yield peer, None
            peer.close()
        return taken

    def _accept(self) -> Iterator[tuple[Peer, bytes | FrameTooLong | None]]:
        """Accept the peers that wait, and read them at once: they may have left already."""
        while len(self._peers) < self._most:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # nobody is left, one hung up already, or descriptors ran out
                return
            connection.setblocking(False)
            peer = Peer(self, connection)
            self._peers.add(peer)
            self._selector.register(connection, selectors.EVENT_READ, peer)
            self._accept_if_room()
            yield from self._read(peer)

    def _drop(self, peer: Peer) -> None:
        self._selector.unregister(peer.socket)
        self._peers.discard(peer)
        self._accept_if_room()

    def _accept_if_room(self) -> None:
        room = len(self._peers) < self._most
        if room and not self._accepting:
            self._selector.register(self._socket, selectors.EVENT_READ, None)
        elif self._accepting and not room:
            self._selector.unregister(self._socket)
        self._accepting = room

    def _want_to_write(self, peer: Peer, wanted: bool) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        self._selector.modify(peer.socket, events, peer)
