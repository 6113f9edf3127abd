"""A program at a terminal of its own, at which a test types and looks."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: A bound on a hang, not a measure of speed.
PATIENCE_S = 90.0


class Terminal:
    """Runs a command with a terminal as its stdin, stdout and stderr.

    Args:
        command: what to run.
        environment: all of its variables.
        start: starts it, where not ``subprocess.Popen`` should.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen,
        **settings: Any,
    ) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(80, 24, tell=False)
        self.seen = ""
        self.process = start(
            list(command),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=dict(environment),
            start_new_session=True,
            **settings,
        )
        os.close(theirs)

    def resize(self, columns: int, rows: int, *, tell: bool = True) -> None:
        """Let the window have another size."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:  # it is in a session of its own, whose foreground nobody has set
            self.process.send_signal(28)  # SIGWINCH

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    def until(self, text: str) -> str:
        """Wait for it to be shown; all that came up to its end, which is then forgotten."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            assert time.monotonic() < deadline, f"never showed {text!r}: {self.seen!r}"
            assert self._look(), f"ended before {text!r}: {self.seen!r}"
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def _look(self) -> bool:
        if not select.select([self._ours], [], [], 1.0)[0]:
            return True
        try:
            piece = os.read(self._ours, 1 << 16)
        except OSError:  # how a terminal says that nobody has it any more
            return False
        self.seen += piece.decode(errors="replace")
        return bool(piece)

    def end(self) -> int:
        """Wait for its end; the exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._look():
            assert time.monotonic() < deadline, f"does not end: {self.seen!r}"
            if self.process.poll() is not None and not select.select([self._ours], [], [], 0.2)[0]:
                break
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """Nothing may be left."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        os.close(self._ours)
