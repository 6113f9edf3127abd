"""Print as JSON what a machine has: ``probe {"modules": [...], "packages": [...],
"folders": {PATH: TOKEN}}``; behind ``python_facts.py``.

Modules are imported. Of packages only the version is looked up: torch takes long to import.

A folder is tried with a file of our own, and TOKEN names a file that must be there already,
if it is not empty; null: the folder is only read from. Written for any Python 3, so that one that
is too old can report it.
"""

import importlib
import json
import os
import shutil
import sys
import tempfile
import time


def look_at_module(name: str) -> dict:  # type: ignore[type-arg]
    """Version of a module, or why it cannot be imported."""
    try:
        module = importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is wrong with it
        return {"trouble": "%s: %s" % (type(error).__name__, error)}  # noqa: UP031
    return {"version": str(getattr(module, "__version__", ""))}


def version_of(package: str) -> str:
    """The installed version; empty if there is none, or if this Python is too old to know."""
    try:
        from importlib.metadata import version

        return str(version(package))
    except Exception:  # noqa: BLE001 - it has none that we could know
        return ""


def look_at_folder(path, token) -> dict:  # type: ignore[type-arg,no-untyped-def]
    """Whether a folder is there, may be written, and is the one that is meant."""
    path = os.path.abspath(os.path.expanduser(path))
    facts = {"path": path, "there": os.path.isdir(path), "writable": False, "trouble": ""}
    place = path
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    facts["free"] = shutil.disk_usage(place).free
    facts["unsafe"] = unsafe(path) if facts["there"] else ""
    if facts["there"] and token is None:
        facts["readable"] = os.access(path, os.R_OK) and os.access(path, os.X_OK)
    elif facts["there"]:
        try:
            with tempfile.TemporaryFile(dir=path) as file:
                file.write(b"bequeath")
                file.flush()
            facts["writable"] = True
        except OSError as error:
            facts["trouble"] = error.strerror or str(error)
        facts["same"] = bool(token) and os.path.exists(os.path.join(path, token))
    else:
        facts["makeable"] = os.access(place, os.W_OK)
    return facts


def unsafe(path) -> str:  # type: ignore[no-untyped-def]
    """Why others could put something else there; a risk for a work folder, not for weights."""
    try:
        return str(folder_trouble(path))  # type: ignore[name-defined]  # noqa: F821 - as above
    except OSError as error:
        return error.strerror or str(error)


def main() -> None:
    """Look, and print the answer."""
    order = json.loads(sys.argv[1])
    answer = {
        "time": time.time(),
        "python": python_facts(),  # type: ignore[name-defined]  # noqa: F821 - goes before this
        "version": list(sys.version_info[:3]),
        "executable": sys.executable,
        "cores": os.cpu_count(),
        "modules": dict((name, look_at_module(name)) for name in order["modules"]),  # noqa: C402
        "packages": dict((name, version_of(name)) for name in order["packages"]),  # noqa: C402
        "folders": dict(  # noqa: C402
            (path, look_at_folder(path, token)) for path, token in order["folders"].items()
        ),
    }
    print(json.dumps(answer))  # noqa: T201 - that is the answer


main()
