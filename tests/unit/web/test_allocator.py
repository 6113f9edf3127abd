"""What is large and free again is the system's, whatever was freed before."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

#: Bytes in mappings of their own, before and after a large block, once a larger one was freed.
LOOK = """
import ctypes, sys
from dispatcher.web.allocator import give_back_at_once

class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]

count = ctypes.CDLL(None).mallinfo2
count.restype = Counts
if sys.argv[1] == "settled":
    assert give_back_at_once()
freed = bytes(16 << 20)
del freed
before = count().e
large = bytes(1 << 20)
print(count().e - before)
"""


@pytest.mark.parametrize("word, own", [("settled", True), ("as it is", False)])
def test_a_large_block_has_a_mapping_of_its_own(word: str, own: bool) -> None:
    """Mutation: settings that the library does not know. The second shows what they are for."""
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("this C library does not say what it has mapped")
    done = subprocess.run(
        [sys.executable, "-c", LOOK, word], capture_output=True, text=True, check=True
    )
    assert (int(done.stdout) >= 1 << 20) is own
