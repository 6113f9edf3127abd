"""Queue of the messages of all threads of the tuner host, until the I/O thread sends them."""

from __future__ import annotations

import os
from collections import deque


class Outbox:
    """An ordered outbox with a descriptor that becomes readable when something is in it.

    ``append`` of a deque is one step under the interpreter's lock, so no lock is needed; the
    descriptor is written to only once after each look of the I/O thread.
    """

    def __init__(self) -> None:
        self._messages: deque[object] = deque()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._woken = False

    def say(self, message: object) -> None:
        """Queue a message and wake the I/O thread. Any thread; never blocks."""
        self._messages.append(message)
        self.wake()

    def say_later(self, message: object) -> None:
        """Queue a message that may wait for the next one to travel with."""
        self._messages.append(message)

    def wake(self) -> None:
        """Make :meth:`fileno` readable."""
        if not self._woken:
            self._woken = True
            try:
                os.write(self._writer, b"w")
            except BlockingIOError:
                return  # full of wake-ups already

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._reader

    def clear(self, *, readable: bool) -> None:
        """Note that the I/O thread is awake.

        Call before :meth:`take`: a message queued in between wakes it again.

        Args:
            readable: whether polling has shown the descriptor as readable.
        """
        if not (readable or self._woken):
            return
        try:
            os.read(self._reader, 4096)
        except BlockingIOError:
            pass
        self._woken = False

    def waiting(self) -> bool:
        """Whether messages are queued."""
        return bool(self._messages)

    def take(self) -> list[object]:
        """Take all messages, in the order in which they were queued."""
        messages = self._messages
        taken = []
        for _ in range(len(messages)):
            taken.append(messages.popleft())
        return taken
