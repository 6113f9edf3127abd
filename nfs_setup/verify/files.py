"""Small files in a folder of one's own: written for good, read whole, digested."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import time

#: The folders that a verification makes below a share; nothing else there is ever touched.
PREFIX = ".bequeath-verify-"

_OURS = re.compile(re.escape(PREFIX) + r"[0-9a-f]{16}")

#: Most bytes of a file that is digested whole; those here have a few hundred KiB.
_MOST_BYTES = 16 << 20


def new_name() -> str:
    """Return a name for a verification's folder that nobody can guess or has taken."""
    return PREFIX + secrets.token_hex(8)


def is_ours(name: str) -> bool:
    """Whether a name below a share is that of a verification's folder."""
    return _OURS.fullmatch(name) is not None


def put(path: str, content: bytes) -> float:
    """Write a new file durably, under a name that was free. Returns the seconds of its fsync.

    Group members may read it: trials of several users share a group, not a user.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o660)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        began = time.perf_counter()
        os.fsync(descriptor)
        return time.perf_counter() - began
    finally:
        os.close(descriptor)


def replace(path: str, content: bytes) -> float:
    """Replace a file as weights are published. Returns the seconds of its fsync."""
    new = f"{path}.{secrets.token_hex(4)}.new"
    took = put(new, content)
    os.rename(new, path)
    return took


def get(path: str) -> bytes:
    """Return all of a file, which is opened for it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MOST_BYTES)


def digest(content: bytes) -> str:
    """Return the BLAKE2b of 256 bits: the fastest of the standard library."""
    return hashlib.blake2b(content, digest_size=32).hexdigest()


def code_of(error: OSError) -> str:
    """Return the system's name of an error, ``ENOSPC``."""
    return errno.errorcode.get(error.errno or 0, f"errno {error.errno}")
