"""Moves the tuner's output from a pipe into a bounded, rotated log.

A pipe and not the file itself, since only so a tuner that prints gigabytes stays within the
bound at every moment; a tuner that prints faster than its output is moved has to wait.
"""

from __future__ import annotations

import fcntl
import os
import select
import termios
import threading
import time
from pathlib import Path
from typing import Final

from trial_runtime.agent.base.logs import LogFile, end_of, make_pipe

#: Bytes of one file of the tuner's log, and how many files there are, older ones included.
LOG_BYTES: Final = 16 << 20
LOG_FILES: Final = 4

#: Seconds that the last output gets to arrive once its process is gone. A process of the author's
#: that escaped may hold the pipe for as long as it likes.
_LAST_S: Final = 1.0


class Output(threading.Thread):
    """The log of one process of the tuner host, and the thread that writes it.

    Args:
        path: the log, ``tuner.log``; older parts are ``tuner.log.1`` and so on.
        max_bytes: size of one file.
        max_files: number of files, older parts included.
    """

    def __init__(
        self, path: Path, *, max_bytes: int = LOG_BYTES, max_files: int = LOG_FILES
    ) -> None:
        super().__init__(name="tuner-log", daemon=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._path = path
        self._before = path.stat().st_size
        self._log = LogFile(str(path), max_bytes=max_bytes, max_files=max_files)
        self._pipe, self.write_end = make_pipe()
        self._moving = False  # some output may be neither in the pipe nor in the log

    def begin(self) -> None:
        """Start the thread; call once the process has its end of the pipe."""
        os.close(self.write_end)
        self.start()

    def run(self) -> None:
        """Move output until no process holds the other end of the pipe."""
        readable = select.poll()
        readable.register(self._pipe, select.POLLIN)
        while True:
            readable.poll()
            self._moving = True
            more = self._log.pump(self._pipe)
            self._moving = False
            if not more:
                break
        self._log.close()
        os.close(self._pipe)

    def finish(self, patience_s: float = _LAST_S) -> None:
        """Wait, not for long, until all output of the process is in the log."""
        self.join(patience_s)

    def settle(self, patience_s: float = _LAST_S) -> None:
        """Wait, not for long, until all output so far is in the log."""
        give_up = time.monotonic() + patience_s
        while self.is_alive() and time.monotonic() < give_up:
            try:
                answer = fcntl.ioctl(self._pipe, termios.FIONREAD, b"\0" * 4)
            except OSError:
                return  # closed: all was read
            if not any(answer) and not self._moving:
                return
            time.sleep(0.001)

    def last_lines(self, lines: int, nbytes: int) -> str:
        """The end of this process's output, whole lines of it.

        Args:
            lines: most lines to return.
            nbytes: most bytes of them.
        """
        files = [(str(self._path), 0 if self._log.rotations else self._before)]
        if self._log.rotations:
            files.append((f"{self._path}.1", self._before if self._log.rotations == 1 else 0))
        text = end_of(files, nbytes).decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])
