"""What kind of Python runs this: the part that programs of other files begin with.

Written for any Python 3, so that one that is too old can say so.
"""

import os
import sys

#: What the driver of GPUs brings, wherever it is one: under WSL there is no /dev/nvidiactl.
DRIVER = "libnvidia-ml.so.1"


def python_facts() -> dict:  # type: ignore[type-arg]
    """What decides which wheels fit, and by which tag their folders are told apart; and how the
    user's prolog ended."""
    cpu = os.uname().machine
    libc, libc_version = "", [0, 0]
    try:
        libc, _, number = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        libc_version = [int(x) for x in number.split(".")[:2]]
    except (AttributeError, OSError, ValueError):
        libc = ""
    if not libc and os.path.exists("/lib/ld-musl-%s.so.1" % cpu):  # noqa: UP031
        libc, libc_version = "musl", [1, 2]
    threads = "t" if "t" in getattr(sys, "abiflags", "") else ""
    return {
        "implementation": sys.implementation.name + threads,
        "tag": sys.implementation.cache_tag,
        "cpu": cpu if sys.maxsize > 2**32 else "",
        "libc": libc,
        "libc_version": libc_version,
        "gpus": _has_driver(),
        "prolog": int(os.environ.get("BEQUEATH_PROLOG_ENDED") or 0),
    }


def _has_driver() -> bool:
    try:
        import ctypes

        ctypes.CDLL(DRIVER)
    except (ImportError, OSError):
        return os.path.exists("/dev/nvidiactl")
    return True
