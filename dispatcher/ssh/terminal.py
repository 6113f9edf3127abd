"""A command there, with our own stdin, stdout and stderr: a terminal, or plain streams."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import termios
import threading
import time
import tty
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dispatcher.errors import BackendError
from dispatcher.ssh.errors import ConnectionLost
from dispatcher.ssh.started import Started, TerminalSize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dispatcher.ssh.connection import SshConnection

_CHUNK = 32 << 10
_LOOK_S = 0.5
_LINGER_S = 2.0

#: Exit code of OpenSSH's client, too: a signal ended the command, whichever.
_BY_SIGNAL = 255


def size_of_ours() -> TerminalSize:
    """The terminal in front of us."""
    size = shutil.get_terminal_size()
    return TerminalSize(size.columns, size.lines, os.environ.get("TERM") or "xterm")


def hand_over(
    connection: SshConnection,
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    terminal: bool,
) -> int:
    """Let a command there have our stdin, stdout and stderr until it ends; its exit code.

    Call it in the main thread.

    Args:
        connection: to the machine.
        argv: the program, looked up in PATH there, and its arguments.
        environment: added to what the login gives; in no list of processes.
        terminal: whether it gets a terminal. Ours is raw meanwhile: each key goes there, Ctrl-C
            too. Without one Ctrl-C here ends the command there.

    Raises:
        ConnectionLost: the command may or may not go on there.
        SessionRefused: the machine runs nothing for us, or gives no terminal.
    """
    size = size_of_ours() if terminal else None
    with (
        connection.started(argv, environment=environment, terminal=size) as started,
        _woken_by_resizing() as resized,
        _raw(0) if terminal else contextlib.nullcontext(),
    ):
        return _between(started, resized, terminal=terminal)


@contextlib.contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSADRAIN)  # what was typed before is not lost
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _woken_by_resizing() -> Iterator[int]:
    """A descriptor that can be read when our terminal has another size."""
    read, write = os.pipe()
    os.set_blocking(write, False)

    def tell(*_: object) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(write, b".")

    if threading.current_thread() is not threading.main_thread():
        yield read
        return
    before = signal.signal(signal.SIGWINCH, tell)
    try:
        yield read
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(read)
        os.close(write)


def _between(started: Started, resized: int, *, terminal: bool) -> int:
    channel = started.channel
    _put(1, started.left_over())
    ended_at = None
    with _fed(started):
        while not channel.closed:
            ready, _, _ = select.select([channel, resized], [], [], _LOOK_S)
            if resized in ready:
                os.read(resized, _CHUNK)
                size = size_of_ours()
                if terminal:
                    channel.resize_pty(size.columns, size.rows)
            if _heard(channel):
                continue
            if channel.exit_status_ready():
                # It may have left a child that keeps its outputs open.
                ended_at = ended_at or time.monotonic()
                if channel.eof_received or time.monotonic() - ended_at > _LINGER_S:
                    break
        while _heard(channel):
            pass
    if channel.exit_status_ready() and channel.exit_status >= 0:
        return int(channel.exit_status)
    if not channel.eof_received or not started.alive():
        raise ConnectionLost("the connection ended while the command ran", where=started.label)
    return _BY_SIGNAL


def _heard(channel: Any) -> bool:
    """Pass on what has come; whether there was any."""
    busy = False
    if channel.recv_ready():
        busy = True
        _put(1, channel.recv(_CHUNK))
    if channel.recv_stderr_ready():
        busy = True
        _put(2, channel.recv_stderr(_CHUNK))
    return busy


@contextlib.contextmanager
def _fed(started: Started) -> Iterator[None]:
    """Send our stdin there meanwhile, in a thread: a command that takes nothing, since nobody
    takes its output, would otherwise wait for us for ever, and we for it."""
    read, write = os.pipe()
    thread = threading.Thread(target=_feed, args=(started, read), name="ssh stdin", daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.write(write, b".")
        started.channel.close()
        thread.join(_LINGER_S)
        if not thread.is_alive():
            os.close(read)
        os.close(write)


def _feed(started: Started, stop: int) -> None:
    with contextlib.suppress(BackendError, OSError, EOFError):  # the reader sees them
        while True:
            ready, _, _ = select.select([0, stop], [], [])
            if stop in ready:
                return
            data = os.read(0, _CHUNK)
            if not data:
                started.channel.shutdown_write()
                return
            started.send(data)


def _put(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
