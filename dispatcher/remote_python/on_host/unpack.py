"""The verb ``unpack``: an archive from stdin, unpacked into a folder."""

from __future__ import annotations

import hashlib
import queue
import sys
import tarfile
import threading
from functools import partial
from typing import Any

from .placing import placed

#: Read at a time, and given to the digest.
_CHUNK = 1 << 20

#: Written at a time: what fits the caches of a processor, so that most reads cut one piece.
_COPIED = 64 << 10

#: F_SETPIPE_SZ of Linux, which has a name from Python 3.10 on.
_SET_PIPE_SIZE = 1031


class Reading:
    """Stdin, forwards only, and its digest, which a thread works out meanwhile.

    It takes the place of tarfile's own stream, which moves all it holds for each header.
    """

    def __init__(self) -> None:
        self._chunk = b""
        self._at = 0  # of the chunk, what was read
        self._before = 0  # bytes of earlier chunks
        self._read: Any = queue.Queue(8)
        self._digest = hashlib.sha256()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def read(self, size: int) -> bytes:
        """Read so many bytes; fewer only at the end."""
        parts = []
        while size and (self._at < len(self._chunk) or self._next()):
            part = self._chunk[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def tell(self) -> int:
        return self._before + self._at

    def seek(self, place: int) -> None:
        if place < self.tell():
            raise tarfile.StreamError("an archive is read forwards")
        while place > self.tell() and self.read(min(place - self.tell(), _CHUNK)):
            pass

    def _next(self) -> bool:
        self._before += len(self._chunk)
        self._chunk, self._at = sys.stdin.buffer.read(_CHUNK), 0
        if self._chunk:
            self._read.put(self._chunk)
        return bool(self._chunk)

    def hexdigest(self) -> str:
        """The digest of all that was read; asked once."""
        self._read.put(b"")
        self._thread.join()
        return self._digest.hexdigest()

    def _work(self) -> None:
        while True:
            data = self._read.get()
            if not data:
                return
            self._digest.update(data)


def widen() -> None:
    """Widen the pipe of stdin, where the system allows it: sshd is woken less often."""
    try:
        import fcntl

        fcntl.fcntl(sys.stdin.fileno(), _SET_PIPE_SIZE, _CHUNK)
    except (ImportError, OSError):
        pass  # no pipe, no Linux, or a user who has many


def fill(digest: str, tree: str, part: str) -> None:
    """Unpack it as it comes; a damaged tree is removed again.

    Args:
        digest: that of the archive.
        tree: the folder to fill.
        part: not used.

    Raises:
        ValueError: it has another digest.
        tarfile.TarError: it is no archive, or leads out of the folder.
    """
    del part
    widen()
    reading = Reading()
    stream: Any = reading
    sizes: Any = {"copybufsize": _COPIED}
    with tarfile.open(fileobj=stream, mode="r:", **sizes) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(tree)  # noqa: S202 - the user who logs in may write here anyway
    while reading.read(_CHUNK):
        pass
    if reading.hexdigest() != digest:
        raise ValueError("the archive arrived damaged")


def answer(arguments: dict[str, Any]) -> dict[str, str]:
    """Unpack it. Arguments: ``folder``, and ``digest``, the SHA-256 of the archive in hex."""
    return placed(arguments["folder"], partial(fill, arguments["digest"]), tarfile.TarError)
