"""Unpack a wheel from stdin: ``unwheel FOLDER SHA256``. The folder appears whole or not.

Prints {"state": "there" | "unpacked"} or {"error": NAME, "text": …}. Python 3.9.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile


def unpack(folder: str, wanted: str) -> str:
    """Return the state."""
    folder = os.path.abspath(os.path.expanduser(folder))
    if os.path.isdir(folder):
        return "there"
    parent = os.path.dirname(folder)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    part = tempfile.mkdtemp(prefix=".part-", dir=parent)
    try:
        tree = os.path.join(part, "tree")
        digest = hashlib.sha256()
        with tempfile.TemporaryFile(dir=part) as file:
            for data in iter(lambda: sys.stdin.buffer.read(1 << 20), b""):
                digest.update(data)
                file.write(data)
            if digest.hexdigest() != wanted:
                raise ValueError("the wheel arrived damaged")
            with zipfile.ZipFile(file) as wheel:
                wheel.extractall(tree)
        try:
            os.rename(tree, folder)
        except OSError:
            # Somebody else was quicker: it is the same wheel.
            if not os.path.isdir(folder):
                raise
            return "there"
        return "unpacked"
    finally:
        shutil.rmtree(part, ignore_errors=True)


def main() -> None:
    """Do it, and say how it went."""
    try:
        answer = {"state": unpack(sys.argv[1], sys.argv[2])}
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "EIO")
        answer = {"error": name, "text": error.strerror or str(error)}
    except (zipfile.BadZipFile, ValueError) as error:
        answer = {"error": "EBADMSG", "text": str(error)}
    print(json.dumps(answer))  # noqa: T201 - this is how it answers


main()
