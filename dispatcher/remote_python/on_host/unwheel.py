"""The verb ``unwheel``: a wheel from stdin, unpacked into a folder."""

from __future__ import annotations

import hashlib
import sys
import tempfile
import zipfile
from functools import partial
from typing import Any

from .placing import placed


def fill(wanted: str, tree: str, part: str) -> None:
    """Unpack it, once all of it is known to have the digest that it should.

    Args:
        wanted: that digest.
        tree: the folder to fill.
        part: one for a temporary file.

    Raises:
        ValueError: it has another digest.
        zipfile.BadZipFile: it is no wheel.
    """
    digest = hashlib.sha256()
    with tempfile.TemporaryFile(dir=part) as file:
        for data in iter(lambda: sys.stdin.buffer.read(1 << 20), b""):
            digest.update(data)
            file.write(data)
        if digest.hexdigest() != wanted:
            raise ValueError("the wheel arrived damaged")
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(tree)


def answer(arguments: dict[str, Any]) -> dict[str, str]:
    """Unpack it. Arguments: ``folder``, and ``digest``, the SHA-256 of the wheel in hex."""
    return placed(arguments["folder"], partial(fill, arguments["digest"]), zipfile.BadZipFile)
