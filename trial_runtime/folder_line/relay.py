"""Carries frames between lines and sockets of ZeroMQ, in a thread that may hang with its disk.

Files are touched without the lock, sockets with it. So whoever closes a thread that hangs in a call
of the file system takes its sockets from it, and goes on.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Optional

import zmq

from trial_runtime.folder_line.line import FolderLine
from trial_runtime.folder_line.sealed import MOST_BYTES, MOST_FRAMES, NOBODY, batches

#: Pauses between two looks (seconds): the first after traffic, then half as long again each time.
FIRST_LOOK_S, LONGEST_LOOK_S = 0.1, 1.0
_SLOWER = 1.5

#: What one thread looks at within the first pause: with more lines it takes longer.
_LOOKS_A_SECOND = 200

#: How long a thread may take to end before its sockets are taken from it (seconds).
CLOSE_S = 2.0

_IN, _NOBLOCK = int(zmq.POLLIN), int(zmq.NOBLOCK)

_log = logging.getLogger("bequeath.line")

Open = Callable[[], "zmq.Socket[bytes]"]


class Relay:
    """A line, and the socket whose frames it carries. Thread: that of :class:`RelayThread`.

    Args:
        line: one end of a line.
        open_socket: makes the socket.
        anew: whether each life of the other end has a socket of its own, and there is none before
            the first; else there is one from the beginning.
        unseen_s: the longest pause between two looks while there is no other end.
    """

    def __init__(
        self,
        line: FolderLine,
        open_socket: Open,
        *,
        anew: bool,
        unseen_s: float = LONGEST_LOOK_S,
    ) -> None:
        self.line = line
        self.socket: Optional[zmq.Socket[bytes]] = None if anew else open_socket()
        self.due = float("-inf")
        self.trouble = ""
        self._open = open_socket
        self._anew = anew
        self._unseen_s = unseen_s
        self._closed = False
        self._peer = NOBODY
        self._pause_s = FIRST_LOOK_S
        self._incoming: list[bytes] = []  # for the socket
        self._outgoing: list[list[bytes]] = []  # for the line, by its files

    @property
    def listens(self) -> bool:
        """Whether frames of its socket can go on."""
        return self.socket is not None and not self._outgoing and self.line.takes

    def pump(self, lock: threading.Lock, first_s: float) -> None:
        """Carry what is there in both directions.

        Args:
            lock: of all sockets.
            first_s: the pause until the next look, if there was something.
        """
        moved = self._write(lock)
        if not self._incoming:
            self._incoming = self.line.look()
            moved = moved or bool(self._incoming)
        if self.line.peer != self._peer:
            with lock:
                self._connect()
            self._peer = self.line.peer  # else it is tried again, and what has come waits
        if self._incoming:
            with lock:
                self._hand_on()
        moved = self._write(lock) or moved
        longest_s = self._unseen_s if self._peer == NOBODY else LONGEST_LOOK_S
        usual = min(longest_s, self._pause_s * _SLOWER)
        self._pause_s = first_s if moved else max(first_s, usual)
        self.due = time.monotonic() + self._pause_s

    def _write(self, lock: threading.Lock) -> bool:
        """Send what the socket has; whether there was something."""
        moved = False
        while self._outgoing or self.listens:
            if not self._outgoing:
                with lock:
                    self._outgoing = list(batches(self._gather()))
            if not self._outgoing or not self.line.send(self._outgoing[0]):
                break
            self._outgoing, moved = self._outgoing[1:], True
        return moved

    def _gather(self) -> list[bytes]:
        frames: list[bytes] = []
        size = 0
        while self.socket is not None and len(frames) < MOST_FRAMES and size < MOST_BYTES:
            try:
                frames.append(self.socket.recv(_NOBLOCK))
            except zmq.Again:
                break
            size += len(frames[-1])
        return frames

    def close(self) -> None:
        """Close its socket for good. With the lock held; from any thread."""
        self._closed = True
        if self.socket is not None:
            self.socket.close(linger=0)
            self.socket = None

    def _connect(self) -> None:
        if self._closed or not self._anew:
            return
        if self.socket is not None:
            self.socket.close(linger=0)
            self.socket, self._outgoing = None, []  # for the end before
        self.socket = self._open()

    def _hand_on(self) -> None:
        taken = 0
        try:
            for frame in self._incoming:
                if self.socket is not None:
                    self.socket.send(frame, _NOBLOCK)
                taken += 1
        except zmq.Again:
            pass  # whoever reads there is busy: the rest waits, and the line with it
        self._incoming = self._incoming[taken:]


class RelayThread:
    """Serves relays until it is closed.

    Args:
        relays: which nobody else touches from now on.
        name: of the thread.
        may_look: whether anything is to be looked at now, or written.
    """

    def __init__(
        self, relays: Sequence[Relay], name: str, may_look: Callable[[], bool] = lambda: True
    ) -> None:
        self._relays = relays
        self._may_look = may_look
        self._first_s = max(FIRST_LOOK_S, len(relays) / _LOOKS_A_SECOND)
        self._lock = threading.Lock()  # of all sockets
        self._closing = self._closed = self._removes = False
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def stop(self, *, remove: bool = False) -> None:
        """Have it end when what the sockets hold has been written.

        Args:
            remove: whether the folders of the lines go, too.
        """
        if not self._closing:
            self._removes, self._closing = remove, True
            self._wake_out.send(b"w")

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """End it, or leave it to hang without its sockets; ``timeout_s``: what it may take."""
        self.stop()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            _log.warning("%s hangs with its file system, and is left behind", self._thread.name)
        with self._lock:
            self._close()

    def _close(self) -> None:
        """Close all sockets, once. With the lock held."""
        if self._closed:
            return
        self._closed = True
        for relay in self._relays:
            relay.close()
        self._wake_in.close()
        self._wake_out.close()

    def _work(self) -> None:
        while not self._closing:
            ready = self._wait()
            if self._closing or not self._may_look():
                continue
            now = time.monotonic()
            for relay in self._relays:
                if relay.socket in ready or now >= relay.due:
                    self._pump(relay)
        for relay in self._relays:
            if self._may_look():
                self._pump(relay)
            if self._removes:
                relay.line.remove()

    def _pump(self, relay: Relay) -> None:
        try:
            relay.pump(self._lock, self._first_s)
            relay.trouble = ""
        except Exception as error:  # noqa: BLE001 - the top of a thread, for each line of its own
            if not self._closed and str(error) != relay.trouble:
                _log.exception("%s: %s", self._thread.name, error)
            relay.trouble = str(error)
            relay.due = time.monotonic() + LONGEST_LOOK_S

    def _wait(self) -> set[object]:
        """The sockets that have something to carry, at the latest when a look is due."""
        with self._lock:
            if self._closed:
                return set()
            poller = zmq.Poller()
            poller.register(self._wake_in, _IN)
            left_s = LONGEST_LOOK_S
            if self._may_look():
                for relay in self._relays:
                    if relay.listens:
                        poller.register(relay.socket, _IN)
                due = min(relay.due for relay in self._relays)
                left_s = min(max(due - time.monotonic(), 0.0), left_s)
            return {each for each, _ in poller.poll(int(left_s * 1000) + 1)}
