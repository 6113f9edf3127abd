"""The output of an attempt: from its pipes into bounded, rotated files.

Files are made when something is written, so that a trial that prints nothing leaves none.
The agent pumps, and not the trial writes the file itself, since only so a trial that prints
gigabytes stays within its bound. On Linux the bytes go from pipe to file inside the kernel.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Sequence

from trial_runtime.failpoints import failpoint
from trial_runtime.opening import open_regular

#: Bytes moved per stream and turn of the loop: a loud trial must not hold up the others. Fewer
#: where somebody reads them: those are looked at by Python.
PUMP_BYTES = 1 << 20
_TAPPED_BYTES = 64 << 10

_TAIL_BYTES = 8 << 10
_F_SETPIPE_SZ = 1031  # Linux; fcntl has the name since Python 3.10
_can_splice = sys.platform == "linux" and hasattr(os, "splice")  # Python 3.10


def make_pipe() -> tuple[int, int]:
    """A pipe whose read end does not block and whose ends no child inherits by accident."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    return read_end, write_end


def widen(pipe: int) -> None:
    """Let a pipe hold more, for a loud writer: fewer turns of the loop for the same bytes."""
    if sys.platform == "linux":
        try:
            fcntl.fcntl(pipe, _F_SETPIPE_SZ, 1 << 18)
        except OSError:
            pass  # the user's quota for pipes is used up


def end_of(files: Sequence[tuple[str, int]], most_bytes: int, more: bytes = b"") -> bytes:
    """The end of an output, from the beginning of a line on: a mask does not know half a secret,
    which a cut in the middle of a line would leave, or a file that was begun anew.

    Of one line that is longer than all of it there is twice as much, so that whoever masks it, and
    cuts it then, is left with none either.

    Args:
        files: the newest first, each with the byte from which it belongs to the output.
        most_bytes: of the end.
        more: what came after the files.
    """
    text = more
    for path, start in files:
        room = 2 * most_bytes - len(text)
        if room <= 0:
            break
        try:
            with open(open_regular(path, os.O_RDONLY), "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(start, size - room))
                text = file.read(room) + text
        except OSError:
            continue  # it has gone, or was never made
    if len(text) <= most_bytes:
        return text
    begin = text.find(b"\n", len(text) - most_bytes - 1) + 1
    return text[begin:] if begin and text[begin:].strip() else text[-2 * most_bytes :]


class LogFile:
    """One stream's file, ``path``, with older parts ``path.1``, ``path.2``…

    Args:
        path: of the file.
        max_bytes: of each part.
        max_files: how many parts are kept, the newest included.
        tap: takes all bytes, whether they can be kept or not.
    """

    def __init__(
        self,
        path: str,
        *,
        max_bytes: int,
        max_files: int,
        tap: Callable[[bytes], None] | None = None,
    ) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._tap = tap
        self._descriptor = -1
        self._size = 0
        self._loud = False
        self.rotations = 0  # how often the file was begun anew
        self.failed: str | None = None  # why nothing more is kept, such as a full disk
        self._unkept = b""  # the end of what came afterwards: it may say why the trial failed

    def pump(self, pipe: int, most: int = 0) -> bool:
        """Move what the pipe holds, up to so many bytes; 0: the usual. False at its end."""
        left = most or (PUMP_BYTES if self._tap is None else _TAPPED_BYTES)
        while left > 0:
            try:
                moved = self._move(pipe, left)
            except BlockingIOError:
                return True
            if moved == 0:
                return False
            left -= moved
        if not self._loud:
            self._loud = True
            widen(pipe)
        return True

    def close(self) -> None:
        """Close the file; what is there stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def tail(self, lines: int = 20) -> str:
        """The last lines, bounded in bytes as well; also of what could not be kept."""
        files = ((self.path, 0), (f"{self.path}.1", 0))
        text = end_of(files, _TAIL_BYTES, self._unkept).decode(errors="replace")
        return "\n".join(text.rstrip().splitlines()[-lines:])

    def _move(self, pipe: int, limit: int) -> int:
        room = self._max_bytes - self._size
        in_kernel = _can_splice and self._tap is None and self.failed is None
        if self._descriptor < 0 or room <= 0 or not in_kernel:
            # Nothing is opened or rotated before there is something to write.
            content = os.read(pipe, min(limit, self._max_bytes, 1 << 16))
            if content:
                self._write(content)
                if self._tap is not None:
                    self._tap(content)
            return len(content)
        try:
            moved = os.splice(pipe, self._descriptor, min(limit, room))
        except BlockingIOError:
            raise
        except OSError as error:
            self._fail(error)
            return self._move(pipe, limit)
        self._size += moved
        return moved

    def _write(self, content: bytes) -> None:
        if self.failed is None:
            content = self._kept(content)
        if self.failed is not None:
            self._unkept = (self._unkept + content)[-2 * _TAIL_BYTES :]

    def _kept(self, content: bytes) -> bytes:
        """Write it; returns what could not be written, when the disk is full."""
        try:
            if self._descriptor < 0:
                self._open()
            if self._size and self._size + len(content) > self._max_bytes:
                self._rotate()
            while content and self.failed is None:
                written = os.write(self._descriptor, content)
                self._size += written
                content = content[written:]
        except OSError as error:
            self._fail(error)
        return content

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT
        try:
            self._descriptor = open_regular(self.path, flags)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            failpoint("agent.folder.made")
            self._descriptor = open_regular(self.path, flags)
        self._size = os.lseek(self._descriptor, 0, os.SEEK_END)

    def _rotate(self) -> None:
        self.close()
        self.rotations += 1
        try:
            if self._max_files <= 1:
                os.unlink(self.path)
            for number in range(self._max_files - 1, 0, -1):
                older = self.path if number == 1 else f"{self.path}.{number - 1}"
                if os.path.exists(older):
                    os.replace(older, f"{self.path}.{number}")
            self._open()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        """Keep nothing more, but go on emptying the pipe: a full disk must not stop a trial."""
        self.failed = error.strerror or str(error)
        self.close()
