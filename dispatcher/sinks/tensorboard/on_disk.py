"""Files brought to disk: some one by one, many by one call for their file system.

Each ``fsync`` of a new file makes the file system commit; hundreds of them would hold up the
journal's own, which lies on the same disk.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from trial_runtime import durable_file

#: More files than this are brought to disk together, with whatever else their file system holds
#: back: trials that end so fast leave little else.
MANY: Final = 16


def bring_to_disk(files: Sequence[Path], folder: Path) -> None:
    """Bring files and their names to disk. Blocks. Raises ``OSError``.

    Args:
        files: each in a folder of its own.
        folder: the one of all these folders.
    """
    if len(files) > MANY and sync_file_system(folder):
        return
    for path in files:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        durable_file.sync_folder(path.parent)
    if files:
        durable_file.sync_folder(folder)


def sync_file_system(folder: Path) -> bool:
    """Bring all that the file system of a folder holds back to disk; false where nobody can say so
    (only Linux has it), or it failed."""
    try:
        syncfs = ctypes.CDLL(None).syncfs
    except (AttributeError, OSError):
        return False
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return int(syncfs(descriptor)) == 0
    finally:
        os.close(descriptor)
