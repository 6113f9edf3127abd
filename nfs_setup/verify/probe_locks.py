"""Whether a lock that one machine holds keeps another one out."""

from __future__ import annotations

import fcntl
import os
import time

from nfs_setup.verify.facts import Held
from nfs_setup.verify.files import code_of

_POLL_S = 0.02
_TAKEN = ("EAGAIN", "EACCES")


def hold(path: str, seconds: float) -> Held:
    """Take the lock, and keep it for so long. Others only have it for a moment each."""
    return _with_lock(path, seconds, keep=True)


def attempt(path: str, seconds: float) -> Held:
    """Try to get it, and let it go at once, until it is refused or the time is over."""
    return _with_lock(path, seconds, keep=False)


def _with_lock(path: str, seconds: float, keep: bool) -> Held:
    last = time.monotonic() + seconds
    had = refused = False
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o660)
    try:
        while time.monotonic() < last:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if code_of(error) not in _TAKEN:
                    return Held(had, refused, code_of(error))
                refused = True
                if not keep:
                    break
            else:
                had = True
                if keep:
                    time.sleep(seconds)
                    break
                fcntl.lockf(descriptor, fcntl.LOCK_UN)
            time.sleep(_POLL_S)
    finally:
        os.close(descriptor)
    return Held(had, refused, "")
