"""Small files that are replaced all at once: a reader sees the old content or the new one.

A *durable* one is that after a power cut, too. Written elsewhere for a reason: what is long and
comes in pieces, what lies in a folder that the code of trials can change (those go by descriptors
of folders), logs that grow, the lock file (whose inode is what is locked), and files of weights.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Optional

from trial_runtime.opening import create_private


def replace(
    path: Path, content: bytes, *, mode: Optional[int] = 0o600, durable: bool = True
) -> None:
    """Replace a file by this content, all at once. Blocks for the disk if it is durable.

    Args:
        path: of the file, which need not be there; a link there is replaced, not followed.
        content: all of it.
        mode: its permissions, whatever the umask; None: what the umask leaves.
        durable: whether it must be there after a power cut once this has returned.

    Raises:
        OSError: it cannot be written; what was there still is.
    """
    with Draft(path, content, mode=mode, durable=durable) as draft:
        draft.place()


class Draft:
    """A file beside its place, which it takes at :meth:`place`; without that it goes at the end.

    For who replaces several files, none before there is room for all.

    Args:
        path: of the file that it may replace.
        content: all of it.
        mode: its permissions, whatever the umask; None: what the umask leaves.
        durable: whether it is on disk before it takes its place, and its name is after that.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(
        self, path: Path, content: bytes, *, mode: Optional[int] = 0o600, durable: bool = True
    ) -> None:
        self._path = path
        self._durable = durable
        # Threads have numbers of their own, so that two that write one file each have a draft.
        self._draft = path.with_name(f".{path.name}.{threading.get_native_id()}")
        descriptor = create_private(str(self._draft), 0o666 if mode is None else 0o600)
        try:
            with open(descriptor, "wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
        except BaseException:
            self._draft.unlink(missing_ok=True)
            raise

    def place(self) -> None:
        """Take the place of the file. Raises ``OSError``."""
        self._draft.replace(self._path)
        if self._durable:
            sync_folder(self._path.parent)

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._draft.unlink(missing_ok=True)  # nothing, once it has its place


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk. Raises ``OSError``."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
