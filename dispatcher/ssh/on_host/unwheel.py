"""Unpack a wheel from stdin: ``unwheel FOLDER SHA256``, behind ``placing.py``.

Prints {"state": "there"} or {"state": "unpacked"}, or {"error": NAME, "text": ...}. Python 3.9.
"""

import hashlib
import sys
import tempfile
import zipfile


def fill(tree: str, part: str) -> None:
    """Unpack it, once all of it is known to have the digest that it should."""
    digest = hashlib.sha256()
    with tempfile.TemporaryFile(dir=part) as file:
        for data in iter(lambda: sys.stdin.buffer.read(1 << 20), b""):
            digest.update(data)
            file.write(data)
        if digest.hexdigest() != sys.argv[2]:
            raise ValueError("the wheel arrived damaged")
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(tree)


answer(fill, zipfile.BadZipFile)  # type: ignore[name-defined]  # noqa: F821 - goes before this
