"""The agent's own log, which cannot grow beyond its bound.

The agent appends to a file that the head opened for it, and outlives heads: so it looks after
the file itself. Its processes hold the same file, which therefore is cut, not renamed.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import time
from pathlib import Path
from typing import Final

#: Beyond so many bytes the log is begun anew, and so much of its end is kept in ``agent.log.1``.
LOG_BYTES: Final = 10 << 20
KEPT_BYTES: Final = 2 << 20


class OwnLog(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes lines to standard error, and bounds the file behind it, if it is ``path``.

    Args:
        path: of the log.
        max_bytes: a longer log is begun anew.
        kept_bytes: the part of its end that is kept beside it then.
    """

    def __init__(
        self, path: Path, *, max_bytes: int = LOG_BYTES, kept_bytes: int = KEPT_BYTES
    ) -> None:
        super().__init__(sys.stderr)
        self._path = path
        self._max_bytes = max_bytes
        self._kept_bytes = kept_bytes
        formatter = logging.Formatter(
            "%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S"
        )
        formatter.converter = time.gmtime
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        super().emit(record)
        try:
            opened = os.fstat(self.stream.fileno())
            if opened.st_size > self._max_bytes and self._is_ours(opened):
                self._begin_anew(opened.st_size)
        except (OSError, ValueError):
            pass  # a log is no reason to end

    def _is_ours(self, opened: os.stat_result) -> bool:
        """Whether standard error is the log, and not a terminal or somebody else's file."""
        there = self._path.stat()
        same = (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino)
        return same and stat.S_ISREG(opened.st_mode)

    def _begin_anew(self, size: int) -> None:
        with self._path.open("r+b") as log:
            log.seek(max(0, size - self._kept_bytes))
            kept = self._path.with_name(f"{self._path.name}.1")
            kept.write_bytes(log.read(self._kept_bytes))
            log.truncate(0)  # the others append
