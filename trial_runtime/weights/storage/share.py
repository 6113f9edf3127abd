"""Whether a folder on this host is the share that the head knows, and can be written to.

The head leaves a file with a random token below the weights root; an agent on another host,
where the root may be mounted at another place, reads it there before it takes any trial. A
folder of the right name that nothing is mounted on, the wrong export, one that is read-only:
each is found before a trial has trained for a day, and reported in one sentence.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from typing import Final

from trial_runtime.errors import PathThroughLink
from trial_runtime.weights.storage import confined
from trial_runtime.weights.storage.paths import SHARE_NAME
from trial_runtime.weights.storage.publishing import TEMPORARY_PREFIX

_FILE: Final = "share"
_TOKEN_BYTES: Final = 16
#: More than any token has; what is read of a file that somebody else put there.
_MOST_BYTES: Final = 256
_DENIED: Final = {errno.EACCES, errno.EPERM}
_ADVICE: Final = "compare with its owner and mode, and with root_squash on NFS"


def lay_token(root: str) -> str:
    """The token of a weights root, made durable where there is none yet.

    One for all experiments that share the root; two heads that lay it down at once agree.
    Blocks on the disk.

    Raises:
        OSError: it can be neither read nor written.
    """
    folder = os.path.join(os.path.realpath(root), SHARE_NAME)
    try:
        with suppress(FileNotFoundError):
            return _read(folder)
        with confined.folder(folder, make=True) as at:
            _lay(at)
    except PathThroughLink as link:
        # The system's own error for a link that may not be followed: none of ours stands there.
        raise OSError(errno.ELOOP, f"{link.message} ({folder})", folder) from link
    return _read(folder)


def _lay(at: int) -> None:
    draft = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
    token = secrets.token_hex(_TOKEN_BYTES)
    _write(draft, token, at)
    try:
        os.link(draft, _FILE, src_dir_fd=at, dst_dir_fd=at)  # the second head takes the first's
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        with suppress(FileExistsError):
            _write(_FILE, token, at)
    finally:
        os.unlink(draft, dir_fd=at)
    confined.sync(at)


def _write(name: str, token: str, at: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o644, dir_fd=at)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(token)
        file.flush()
        os.fsync(file.fileno())


def trouble_with(root: str, token: str, canonical: str = "") -> str:
    """The reason why trials of this host cannot work below a root; empty if they can.

    Looks once, and leaves nothing behind. Blocks for as long as the file system does.

    Args:
        root: the weights root as it is called on this host.
        token: what :func:`lay_token` gave the head.
        canonical: the head's name for the root, for the sentence.

    Returns:
        One sentence.
    """
    called = f"the weights root {root}"
    share = "the head's" + (f" ({canonical})" if canonical and canonical != root else "")
    try:
        inside = os.listdir(root)  # has an NFS client ask its server what is there
    except FileNotFoundError:
        return f"{called} is not there: is the share mounted on this host, and at this place?"
    except NotADirectoryError:
        return f"{called} is no folder"
    except OSError as fault:
        if fault.errno in _DENIED:
            return f"{called} lets {_who()} not in: {_ADVICE}"
        return f"{called} cannot be read: {fault.strerror}"
    if not inside:
        return f"{called} is empty, as a place is where nothing is mounted: mount the share there"
    try:
        found = _read(os.path.join(os.path.realpath(root), SHARE_NAME))
    except FileNotFoundError:
        return f"{called} is not the same share as {share}: what the head wrote is not there"
    except OSError as fault:
        return f"{called}: what the head wrote there cannot be read: {fault.strerror}"
    except PathThroughLink as link:
        return f"{called}: what the head wrote there is not read: {link.message}"
    if found != token:
        return f"{called} is another share than {share}: another token stands there"
    return _trouble_with_writing(root, called)


def _trouble_with_writing(root: str, called: str) -> str:
    path = os.path.join(root, f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}-probe")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.close(fd)
        os.unlink(path)
    except OSError as fault:
        if fault.errno == errno.EROFS:
            return f"{called} is read-only on this host: mount and export it for writing"
        if fault.errno in _DENIED:
            return f"{called} takes no files of {_who()}: {_ADVICE}"
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            return ""  # the right share; other checks report that it is full
        return f"{called} takes no files: {fault.strerror}"
    return ""


def _who() -> str:
    return f"user {os.geteuid()} (group {os.getegid()}) of this host"


def _read(folder: str) -> str:
    """The token in a folder at a canonical path."""
    with confined.folder(folder) as at:
        fd = os.open(_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    try:
        return os.read(fd, _MOST_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(fd)
