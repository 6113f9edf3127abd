"""Runs a command on a session: feeds its stdin, takes its outputs, bounded, until a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from dispatcher.ssh.command import Launch
from dispatcher.ssh.link import Link

_CHUNK = 64 << 10

#: Two full packets: OpenSSH takes 32 KiB in one, of which paramiko keeps 64 bytes. What is left
#: over of a piece goes as a packet of its own, however small it is.
_PIECE = 2 * ((32 << 10) - 64)
_POLL_S = 0.05

#: A command that has ended may have left a child that keeps its outputs open.
_LINGER_S = 2.0
_SETTLE_S = 2.0


class Readable(Protocol):
    """Something that is read to its end."""

    def read(self, size: int = ..., /) -> bytes:
        """Read so many bytes at most; none at the end."""
        ...


@dataclass(frozen=True)
class Ran:
    """The end of a command. ``code`` is -1 where a signal ended it.

    ``cut``: an output was longer than was asked for; the rest was dropped.
    """

    code: int
    out: bytes
    err: bytes
    cut: bool = False

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.code == 0

    def complaint(self) -> str:
        """The end of stderr, for a message; of stdout if stderr is empty."""
        text = (self.err.strip() or self.out.strip()).decode(errors="replace")
        return text[-2000:]


class OutOfTime(Exception):
    """Raised when a command ran past its limit. ``pid`` leads its group there; 0 if unknown."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.pid = pid


@dataclass
class _Kept:
    """The beginning of a stream."""

    most: int
    data: bytearray = field(default_factory=bytearray)
    cut: bool = False

    def take(self, data: bytes) -> None:
        room = self.most - len(self.data)
        self.data += data[:room]
        self.cut = self.cut or len(data) > room


@dataclass
class _KeptAfterPid(_Kept):
    """The beginning of stderr, without the line by which the launcher names its process."""

    mark: bytes = b""
    pid: int = 0
    _before: bytes = b""

    def take(self, data: bytes) -> None:
        if not self.mark:
            super().take(data)
            return
        self._before += data
        start = self._before.find(self.mark)
        end = self._before.find(b"\n", start) if start >= 0 else -1
        if end >= 0:
            self.pid = int(self._before[start + len(self.mark) : end])
            self._before = self._before[:start] + self._before[end + 1 :]
        if end >= 0 or len(self._before) > _CHUNK:
            self.flush()

    def flush(self) -> None:
        """Stop looking for such a line."""
        self.mark, before, self._before = b"", self._before, b""
        super().take(before)


def talk(
    link: Link,
    channel: Any,
    *,
    launch: Launch,
    stdin: bytes | Readable,
    limit_s: float,
    most_bytes: int,
    name: str,
) -> Ran:
    """Drive a command to its end. Blocks.

    Args:
        link: the one that it runs over.
        channel: a session on which the launcher runs.
        launch: the command.
        stdin: its input; a file is read to its end.
        limit_s: seconds until its end.
        most_bytes: bytes that are kept of each output.
        name: of the command, for messages.

    Raises:
        OutOfTime: it took longer, and goes on.
        ConnectionLost: it may or may not go on there.
    """
    deadline = time.monotonic() + limit_s
    out, err = _Kept(most_bytes), _KeptAfterPid(most_bytes, mark=launch.mark)
    feeding = threading.Thread(
        target=_feed, args=(channel, launch.line, stdin), name=f"ssh stdin {name}", daemon=True
    )
    feeding.start()
    woken = threading.Event()
    channel.in_buffer.set_event(woken)
    ended_at: float | None = None
    while True:
        over = channel.closed
        if _drain(channel, out, err):
            continue
        if over:
            break
        now = time.monotonic()
        if channel.status_event.is_set():
            ended_at = now if ended_at is None else ended_at
            if channel.eof_received or now - ended_at > _LINGER_S:
                break
        if now >= deadline:
            raise OutOfTime(err.pid)
        # An end of the output leaves the first one set for good.
        waited_for = channel.status_event if channel.eof_received else woken
        if not waited_for.wait(_POLL_S) or ended_at is not None:
            time.sleep(0.001)
    if channel.exit_status == -1 and _cut_off(link, channel):
        raise link.lost(f"{name!r} ran")
    err.flush()
    feeding.join(_LINGER_S)
    return Ran(channel.exit_status, bytes(out.data), bytes(err.data), out.cut or err.cut)


def _drain(channel: Any, out: _Kept, err: _Kept) -> bool:
    """Take what has arrived; whether there was any."""
    busy = False
    if channel.recv_ready():
        busy = True
        out.take(channel.recv(_CHUNK))
    if channel.recv_stderr_ready():
        busy = True
        err.take(channel.recv_stderr(_CHUNK))
    return busy


def _cut_off(link: Link, channel: Any) -> bool:
    """Whether a channel without an exit status was ended by the end of the connection.

    A server that ends it in order sends EOF first. If not, paramiko closes the channels of
    a dead connection a moment before it calls the connection dead.
    """
    if channel.eof_received:
        return not link.is_alive()
    return link.ends_within(_SETTLE_S)


def _feed(channel: Any, first: bytes, stdin: bytes | Readable) -> None:
    try:
        for data in _pieces(first, stdin):
            channel.sendall(data)
        channel.shutdown_write()
    except (OSError, EOFError):
        pass  # the command reads no more, or the connection is over: the reader sees it


def _pieces(first: bytes, stdin: bytes | Readable) -> Iterator[bytes]:
    yield first
    if isinstance(stdin, bytes):
        yield stdin
        return
    while data := stdin.read(_PIECE):
        yield data
