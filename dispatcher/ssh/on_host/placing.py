"""Puts a tree that comes by stdin into its folder, which appears whole or not: programs of other
files begin with this part. Python 3.9.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import tempfile
import time
from typing import Any

_DAY_S = 86400


def clear_up(parent: str) -> None:
    """Remove folders that others left half done, long ago."""
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        try:
            if name.startswith(".part-") and time.time() - os.stat(path).st_mtime > _DAY_S:
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass


def place(folder: str, fill: Any) -> str:
    """Return the state: ``there``, or ``unpacked`` by ``fill(tree, part)``, which fills the
    folder ``tree``, not there yet, and may use the folder ``part`` above it."""
    folder = os.path.abspath(os.path.expanduser(folder))
    if os.path.isdir(folder):
        return "there"
    parent = os.path.dirname(folder)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    clear_up(parent)
    part = tempfile.mkdtemp(prefix=".part-", dir=parent)
    try:
        tree = os.path.join(part, "tree")
        os.mkdir(tree)
        os.chmod(tree, 0o755)  # noqa: S103 - mkdtemp shuts everybody out
        fill(tree, part)
        try:
            os.rename(tree, folder)
        except OSError:
            # Somebody else was quicker: it is the same.
            if not os.path.isdir(folder):
                raise
            return "there"
        return "unpacked"
    finally:
        shutil.rmtree(part, ignore_errors=True)


def answer(fill: Any, damaged: Any) -> None:
    """Place it, and print the outcome. ``damaged``: errors of an archive that cannot be read."""
    try:
        outcome = {"state": place(sys.argv[1], fill)}
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "EIO")
        outcome = {"error": name, "text": error.strerror or str(error)}
    except (damaged, ValueError) as error:
        outcome = {"error": "EBADMSG", "text": str(error)}
    print(json.dumps(outcome))  # noqa: T201 - this is how it answers
