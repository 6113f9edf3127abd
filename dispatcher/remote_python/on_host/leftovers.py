"""The verb ``leftovers``: folders that experiments have left on a machine, listed or removed.

A folder that a process here uses is never removed. ``told`` means that an agent has not taken its
configuration away: it runs, here or on a machine with the same home, or was killed.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import Any

from .facts import folder_trouble
from .processes import process_texts


def measured(folder: str) -> tuple[int, float]:
    """Bytes of a folder, and when something in it changed last. Vanished files count nothing."""
    size, newest = 0, 0.0
    for above, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            try:
                status = os.lstat(os.path.join(above, name))
            except OSError:
                continue
            size += status.st_blocks * 512
            newest = max(newest, status.st_mtime)
    return size, newest


def left(place: str) -> dict[str, dict[str, Any]]:
    """The folders that there are, by ``ID/WORKER``."""
    texts = process_texts()
    there = {}
    for experiment in sorted(os.listdir(place) if os.path.isdir(place) else ()):
        inner = os.path.join(place, experiment)
        for worker in sorted(os.listdir(inner) if os.path.isdir(inner) else ()):
            folder = os.path.join(inner, worker)
            if not os.path.isdir(folder) or os.path.islink(folder):
                continue
            size, newest = measured(folder)
            spellings = (folder, os.path.realpath(folder))
            config = os.path.join(folder, f"agent-{worker}.config.json")
            there[f"{experiment}/{worker}"] = {
                "bytes": size,
                "age_s": max(0.0, time.time() - newest) if newest else 0.0,
                "used": any(
                    os.fsencode(each) + end in texts for each in spellings for end in _ENDS
                ),
                "told": os.path.exists(config),
            }
    return there


#: After a folder's name in the texts of processes: nothing else has a name that begins so.
_ENDS = (b"/", b"\0", b"\n")


def answer(arguments: dict[str, Any]) -> dict[str, dict[str, Any]] | list[str]:
    """List them, or remove some; returns the names of those that are gone then.

    Arguments: ``work_folder``, and ``remove``: names of folders, as ``ID/WORKER``, or null.
    """
    above = os.path.abspath(os.path.expanduser(arguments["work_folder"]))
    place = os.path.join(above, "experiments")
    if os.path.isdir(place):
        trouble = folder_trouble(place)
        if trouble:  # names in it may lead to anything that is ours
            sys.exit(trouble)
    there = left(place)
    if arguments["remove"] is None:
        return there
    return removed(place, [x for x in arguments["remove"] if x in there and not there[x]["used"]])


def removed(place: str, names: list[str]) -> list[str]:
    """Remove these; returns those that are gone."""
    gone = []
    for name in names:
        folder = os.path.join(place, *name.split("/"))
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            gone.append(name)
        try:
            os.rmdir(os.path.dirname(folder))  # of an experiment of which nothing is left
        except OSError:
            pass
    return gone
