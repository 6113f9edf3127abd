"""Looks for folders that experiments have left on a machine: run by its Python, of whatever
version, behind ``python_facts.py`` and ``processes_program.py``.

Arguments: the work folder, then folders to remove, as ``ID/WORKER``. Prints as JSON what there is,
or what was removed. A folder that a process here uses is never removed. ``told`` means that an
agent has not taken its configuration away: it runs, here or on a machine with the same home, or was
killed.
"""

import json
import os
import shutil
import sys
import time


def measured(folder: str) -> tuple:  # type: ignore[type-arg]
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


def left(place: str) -> dict:  # type: ignore[type-arg]
    """The folders that there are, by ``ID/WORKER``."""
    texts = process_texts()  # type: ignore[name-defined]  # noqa: F821 - goes before this
    there = {}
    for experiment in sorted(os.listdir(place) if os.path.isdir(place) else ()):
        inner = os.path.join(place, experiment)
        for worker in sorted(os.listdir(inner) if os.path.isdir(inner) else ()):
            folder = os.path.join(inner, worker)
            if not os.path.isdir(folder) or os.path.islink(folder):
                continue
            size, newest = measured(folder)
            spellings = (folder, os.path.realpath(folder))
            config = os.path.join(folder, "agent-%s.config.json" % worker)  # noqa: UP031
            there["%s/%s" % (experiment, worker)] = {  # noqa: UP031
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


def main() -> None:
    """Look, or remove, and print the answer."""
    place = os.path.join(os.path.abspath(os.path.expanduser(sys.argv[1])), "experiments")
    if os.path.isdir(place):
        trouble = folder_trouble(place)  # type: ignore[name-defined]  # noqa: F821
        if trouble:  # names in it may lead to anything that is ours
            sys.exit(trouble)
    there = left(place)
    wanted = sys.argv[2:]
    if not wanted:
        print(json.dumps(there))  # noqa: T201 - that is the answer
        return
    removed = []
    for name in wanted:
        if name not in there or there[name]["used"]:
            continue
        folder = os.path.join(place, *name.split("/"))
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            removed.append(name)
        try:
            os.rmdir(os.path.dirname(folder))  # of an experiment of which nothing is left
        except OSError:
            pass
    print(json.dumps(removed))  # noqa: T201


if __name__ == "__main__":
    main()
