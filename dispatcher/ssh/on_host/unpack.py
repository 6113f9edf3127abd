"""Unpack an archive from stdin: ``unpack FOLDER SHA256``, behind ``placing.py``.

Prints {"state": "there"} or {"state": "unpacked"}, or {"error": NAME, "text": ...}. Python 3.9.
"""

import hashlib
import queue
import sys
import tarfile
import threading
from typing import Any

#: Between stdin and files. tarfile's own 16 KiB take as long as all the rest.
_CHUNK = 1 << 20


class Reading:
    """Stdin, and the digest of what was read of it, which a thread works out meanwhile."""

    def __init__(self) -> None:
        self._read: Any = queue.Queue(8)
        self._digest = hashlib.sha256()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def read(self, size: int) -> bytes:
        data = sys.stdin.buffer.read(size)
        if data:
            self._read.put(data)
        return data

    def hexdigest(self) -> str:
        """Of all that was read; asked once."""
        self._read.put(b"")
        self._thread.join()
        return self._digest.hexdigest()

    def _work(self) -> None:
        while True:
            data = self._read.get()
            if not data:
                return
            self._digest.update(data)


def bring(tree: str, part: str) -> None:
    """It is unpacked as it comes; what is damaged goes again."""
    reading = Reading()
    stream: Any = reading
    sizes: Any = {"bufsize": _CHUNK, "copybufsize": _CHUNK}
    with tarfile.open(fileobj=stream, mode="r|", **sizes) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(tree)  # noqa: S202 - who logs in may write here anyway
    while reading.read(_CHUNK):
        pass
    if reading.hexdigest() != sys.argv[2]:
        raise ValueError("the archive arrived damaged")


answer(bring, tarfile.TarError)  # type: ignore[name-defined]  # noqa: F821 - goes before this
