"""Small files that are replaced all at once: a reader sees the old content or the new one.

A *durable* one is that after a power cut, too. Written elsewhere for a reason: what is long and
comes in pieces, what lies in a folder that the code of trials can change (those go by descriptors
of folders), logs that grow, the lock file (whose inode is what is locked), and files of weights.

Each writer has a draft of its own, under a name that nobody else has, and holds a lock on it. Who
is killed before its draft has its place leaves it without a lock: the next one that writes the
same file removes it, since there may be secrets in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from pathlib import Path
from types import TracebackType
from typing import Optional, Union

#: A sweep takes a new draft for a leftover once in a lifetime. Some file systems in user space say
#: of every file that it has no name, or is locked: what they make last is used as it is.
_MOST_TRIES = 10


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
        _remove_leftovers(path)
        self._draft, descriptor = _new_draft(path, 0o666 if mode is None else 0o600)
        self._file = open(descriptor, "wb")  # noqa: SIM115 - holds its lock
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            self._file.write(content)
            self._file.flush()
            if durable:
                os.fsync(descriptor)
            else:  # a file server may say at a close only that there is no room
                os.close(os.dup(descriptor))
        except BaseException:
            self._give_up()
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
        self._give_up()

    def _give_up(self) -> None:
        """Remove the draft: nothing, once it has its place."""
        with contextlib.suppress(OSError):  # what a full disk did not take before
            self._file.close()
        self._draft.unlink(missing_ok=True)


def _new_draft(path: Path, mode: int) -> tuple[Path, int]:
    """A new file beside ``path``, and a descriptor of it that holds its lock."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for tries_left in reversed(range(_MOST_TRIES)):
        draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        descriptor = os.open(draft, flags, mode)
        ours = _locked(descriptor) is not False and os.fstat(descriptor).st_nlink
        if ours or not tries_left:
            break
        os.close(descriptor)  # before we had the lock, another writer took it for a leftover
        draft.unlink(missing_ok=True)
    return draft, descriptor


def _remove_leftovers(path: Path) -> None:
    """Remove drafts of writers that are gone. Others' files and links of such a name stay."""
    ours = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{16}")
    for name in os.listdir(path.parent):
        if not ours.fullmatch(name):
            continue
        with contextlib.suppress(OSError):  # it is gone, or nothing that we may open
            draft = path.with_name(name)
            descriptor = os.open(draft, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if _locked(descriptor):
                    draft.unlink(missing_ok=True)
            finally:
                os.close(descriptor)


def _locked(descriptor: int) -> Optional[bool]:
    """Lock a file; false if another process or thread has the lock, None where there are none."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None  # of this file system nobody removes leftovers
    return True


def sync_folder(folder: Union[str, Path]) -> None:
    """Bring the names in a folder to disk. Raises ``OSError``."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
