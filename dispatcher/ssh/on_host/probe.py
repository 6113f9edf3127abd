"""Say as JSON what a machine has: ``probe {"modules": [...], "packages": [...],
"folders": {PATH: TOKEN}}``; behind ``python_facts.py``.

Modules are imported. Of packages only the version is looked up: torch takes long to import.

A folder is tried with a file of our own, and TOKEN names a file that must be there already,
if it is not empty; null: the folder is only read from. Written for any Python 3, so that one that
is too old can say so.
"""

import importlib
import json
import os
import shutil
import sys
import tempfile
import time


def look_at_module(name: str) -> dict:  # type: ignore[type-arg]
    """Its version, or why it cannot be imported."""
    try:
        module = importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is wrong with it
        return {"trouble": "%s: %s" % (type(error).__name__, error)}  # noqa: UP031
    return {"version": str(getattr(module, "__version__", ""))}


def version_of(package: str) -> str:
    """Which version is installed; empty if none is, or if this Python is too old to say."""
    try:
        from importlib.metadata import version

        return str(version(package))
    except Exception:  # noqa: BLE001 - there is nothing to say of it
        return ""


def look_at_folder(path, token) -> dict:  # type: ignore[type-arg,no-untyped-def]
    """Whether it is there, may be written, and is the one that is meant."""
    path = os.path.abspath(os.path.expanduser(path))
    found = {"path": path, "there": os.path.isdir(path), "writable": False, "trouble": ""}
    place = path
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    found["free"] = shutil.disk_usage(place).free
    found["unsafe"] = unsafe(path) if found["there"] else ""
    if found["there"] and token is None:
        found["readable"] = os.access(path, os.R_OK) and os.access(path, os.X_OK)
    elif found["there"]:
        try:
            with tempfile.TemporaryFile(dir=path) as file:
                file.write(b"bequeath")
                file.flush()
            found["writable"] = True
        except OSError as error:
            found["trouble"] = error.strerror or str(error)
        found["same"] = bool(token) and os.path.exists(os.path.join(path, token))
    else:
        found["makeable"] = os.access(place, os.W_OK)
    return found


def unsafe(path) -> str:  # type: ignore[no-untyped-def]
    """Why others could put something else there; of weights, which may be shared, nobody asks."""
    try:
        return str(folder_trouble(path))  # type: ignore[name-defined]  # noqa: F821 - as above
    except OSError as error:
        return error.strerror or str(error)


def main() -> None:
    """Look, and say it."""
    asked = json.loads(sys.argv[1])
    told = {
        "time": time.time(),
        "python": python_facts(),  # type: ignore[name-defined]  # noqa: F821 - goes before this
        "version": list(sys.version_info[:3]),
        "executable": sys.executable,
        "cores": os.cpu_count(),
        "modules": dict((name, look_at_module(name)) for name in asked["modules"]),  # noqa: C402
        "packages": dict((name, version_of(name)) for name in asked["packages"]),  # noqa: C402
        "folders": dict(  # noqa: C402
            (path, look_at_folder(path, token)) for path, token in asked["folders"].items()
        ),
    }
    print(json.dumps(told))  # noqa: T201 - that is the answer


main()
