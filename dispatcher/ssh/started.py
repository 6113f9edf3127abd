"""A command that one talks to while it runs, with or without a terminal there."""

from __future__ import annotations

import contextlib
import secrets
import time
from dataclasses import dataclass
from typing import Any

from dispatcher.ssh.command import LAUNCHER, Launch
from dispatcher.ssh.errors import CommandTimedOut, ConnectionLost, SessionRefused
from dispatcher.ssh.link import Link

_CHUNK = 64 << 10
_LOOK_S = 0.5
_MOST_COMPLAINT = 2000

#: A terminal repeats what is typed, takes lines of 4096 bytes at most, and turns Ctrl-C into a
#: signal: none of that may happen to the line that starts the command. It prints when it is ready.
_TERMINAL_LAUNCHER = (
    "exec /bin/sh -c 'bequeath_tty=$(stty -g); stty -echo -icanon -isig min 1 time 0; "
    'echo {ready}; IFS= read -r bequeath_line; stty "$bequeath_tty"; unset bequeath_tty; '
    'eval "$bequeath_line"\''
)


@dataclass(frozen=True)
class TerminalSize:
    """Size and ``kind`` (TERM) of the terminal in front of the user."""

    columns: int
    rows: int
    kind: str = "xterm"


class Started:
    """A command on a session. Thread: one. ``pid`` leads its process group there, 0 until known."""

    def __init__(self, link: Link, channel: Any) -> None:
        self._link = link
        self.channel = channel
        self.pid = 0
        self._read = b""  # of stdout, not taken yet
        self._complaint = b""  # of stderr

    @property
    def label(self) -> str:
        """The machine, for people."""
        return self._link.label

    def alive(self) -> bool:
        """Whether the connection stands, as far as is known."""
        return self._link.is_alive()

    def begin(self, launch: Launch, terminal: TerminalSize | None, limit_s: float) -> None:
        """Start it, and wait until it has begun.

        Args:
            launch: the command.
            terminal: the size of the one that it gets; None for none.
            limit_s: seconds until it must have begun.

        Raises:
            SessionRefused, ConnectionLost, CommandTimedOut: see there.
        """
        import paramiko

        deadline = time.monotonic() + limit_s
        ready = f"bequeath-ready-{secrets.token_hex(8)}"
        try:
            if terminal is not None:
                self.channel.get_pty(terminal.kind, terminal.columns, terminal.rows)
                self.channel.exec_command(_TERMINAL_LAUNCHER.replace("{ready}", ready))
            else:
                self.channel.exec_command(LAUNCHER)
        except (paramiko.SSHException, EOFError, OSError) as error:
            if self._link.ends_within(2):
                raise self._link.lost("a command was started") from error
            what = "gives no terminal" if terminal is not None else "runs no commands"
            raise SessionRefused(what, where=self.label) from error
        if terminal is not None:
            self._until(ready.encode(), deadline, of_terminal=True)
        self.send(launch.line)
        self.pid = int(self._until(launch.mark, deadline, of_terminal=terminal is not None))

    def _until(self, mark: bytes, deadline: float, *, of_terminal: bool) -> bytes:
        """Drop all before the line that begins with ``mark``; returns the rest of that line."""
        seen = b""
        while True:
            start = seen.find(mark)
            end = seen.find(b"\n", start) if start >= 0 else -1
            if end >= 0:
                rest = seen[end + 1 :]
                if of_terminal:
                    self._read = rest
                else:
                    self._complaint = rest
                return seen[start + len(mark) : end].strip()
            piece = self._some(deadline, stderr=not of_terminal)
            if not piece:
                raise self._ended("it could begin", seen)
            seen = seen[-_CHUNK:] + piece

    def send(self, data: bytes) -> None:
        """Send all. Blocks while the other side takes nothing. Raises ``ConnectionLost``."""
        try:
            self.channel.settimeout(None)
            self.channel.sendall(data)
        except (OSError, EOFError) as error:
            raise self._ended("all was sent to it", b"") from error

    def line(self, deadline: float, most: int = 1 << 16) -> bytes:
        """The next line of stdout, without its end.

        Raises:
            CommandTimedOut: none came by this moment of the monotonic clock.
            ConnectionLost: the command has ended, or the connection.
        """
        while b"\n" not in self._read:
            if len(self._read) > most:
                raise ConnectionLost("a line that never ends came", where=self.label)
            self._more(deadline)
        line, _, self._read = self._read.partition(b"\n")
        return line

    def exactly(self, count: int, deadline: float) -> bytes:
        """Read so many bytes of stdout; raises as :meth:`line` does."""
        parts = [self._read]
        have = len(self._read)
        while have < count:
            self._read = b""
            self._more(deadline)
            parts.append(self._read)
            have += len(self._read)
        whole = b"".join(parts)
        self._read = whole[count:]
        return whole[:count]

    def left_over(self) -> bytes:
        """The part of stdout that came with the first line."""
        rest, self._read = self._read, b""
        return rest

    def _more(self, deadline: float) -> None:
        piece = self._some(deadline)
        if not piece:
            raise self._ended("it had answered", b"")
        self._read += piece

    def _some(self, deadline: float, *, stderr: bool = False) -> bytes:
        """The next piece of an output; empty at its end."""
        receive = self.channel.recv_stderr if stderr else self.channel.recv
        while True:
            self.channel.settimeout(_LOOK_S)
            try:
                piece: bytes = receive(_CHUNK)
                return piece
            except TimeoutError:
                if time.monotonic() >= deadline:
                    text = "a command did not answer in time"
                    raise CommandTimedOut(text, where=self.label) from None
                if not self._link.is_alive():
                    raise self._link.lost("a command ran") from None

    def _ended(self, before: str, seen: bytes) -> ConnectionLost:
        """The error for a command that ended too early, with what it wrote to stderr."""
        if self._link.ends_within(1):
            return self._link.lost("a command ran")
        complaint = seen or self._complaint
        self.channel.settimeout(_LOOK_S)  # it may come after the end of stdout
        with contextlib.suppress(OSError):
            while len(complaint) < _MOST_COMPLAINT:
                piece = self.channel.recv_stderr(_CHUNK)
                if not piece:
                    break
                complaint += piece
        stderr = complaint.decode(errors="replace").strip()[-_MOST_COMPLAINT:]
        text = f"a command ended before {before}: {stderr}".rstrip(": ")
        return ConnectionLost(text, where=self.label)
