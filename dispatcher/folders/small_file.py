"""Small files of a folder that may be somebody else's: read without being held up."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, Final

#: More than any experiment file has; a search space may be long.
MOST_BYTES: Final = 64 << 20


def read_small(path: Path) -> bytes:
    """Read a plain file; a pipe without a writer, or a device, keeps no reader waiting.

    Raises:
        OSError: it cannot be read, is no plain file, or is longer than :data:`MOST_BYTES`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "is no plain file", str(path))
        # First what it has, for which alone there must be room in memory; then what has come since.
        content = file.read(min(info.st_size, MOST_BYTES) + 1)
        if len(content) > info.st_size:
            content += file.read(MOST_BYTES + 1 - len(content))
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, "is too long for such a file", str(path))
    return content


def read_object(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file; empty if there is none: the rest can still be shown."""
    try:
        value = json.loads(read_small(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
