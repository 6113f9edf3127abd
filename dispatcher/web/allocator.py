"""The C library's allocator, told what a server is: large answers go back to the system at once."""

from __future__ import annotations

import ctypes
from typing import Final

#: Names of glibc's settings (malloc.h), and what they are set to. A heap for each thread, and a
#: bound on what counts as large that rises with what is freed, are for programs that compute: an
#: answer of a mebibyte leaves a hole in each of them, and small things keep the holes open.
_SETTINGS: Final = {
    -8: 1,  # M_ARENA_MAX: one heap
    -3: 128 << 10,  # M_MMAP_THRESHOLD: larger blocks have mappings of their own, always
    -1: 256 << 10,  # M_TRIM_THRESHOLD: so much may lie free at the heap's end
}


def give_back_at_once() -> bool:
    """Have large blocks given back to the system when they are free; false where the library has no
    such settings. Before threads begin: their heaps stay."""
    try:
        set_one = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    taken = [set_one(name, value) for name, value in _SETTINGS.items()]
    return all(taken)
