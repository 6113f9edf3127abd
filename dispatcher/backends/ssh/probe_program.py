"""Looks what a machine has, before anything of ours is there: run by its Python, of whatever
version, behind ``dispatcher/ssh/on_host/python_facts.py``.

Arguments: the work folder, folders below it that are about to be used (with commas between),
folders from which modules can be had beside the machine's own, then names of modules. Prints as
JSON what the machine has.
"""

import importlib
import json
import os
import sys

FOLDERS = ("code", "runtime", "modules", "experiments")

versions = {}  # type: ignore[var-annotated]


def trouble_with(name: str) -> str:
    """Why a module cannot be imported; empty if it can."""
    try:
        module = importlib.import_module(name)
        versions[name] = str(getattr(module, "__version__", ""))
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is wrong with it
        return "%s: %s" % (type(error).__name__, error)  # noqa: UP031 - old Pythons read this
    return ""


def names_in(folder: str) -> list:  # type: ignore[type-arg]
    """Names in a folder; nothing if there is none."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def whole(folder: str) -> list:  # type: ignore[type-arg]
    """Runtimes with our package in them: an unpacking that was cut short leaves none."""
    names = names_in(folder)
    return [x for x in names if os.path.isdir(os.path.join(folder, x, "trial_runtime"))]


def ours(folder: str, names: list) -> str:  # type: ignore[type-arg]
    """Make the work folder and those in it; returns why they may not be trusted, or nothing.

    Trees in it are known by their names alone, which anybody can know: another user who made the
    folder before us, or can change it, could have our code replaced."""
    try:
        for place in [folder] + [os.path.join(folder, x) for x in names]:
            if not os.path.lexists(place) or place == folder:
                os.makedirs(place, 0o700, exist_ok=True)  # others may make it meanwhile
            trouble = folder_trouble(place)  # type: ignore[name-defined]  # noqa: F821 - before this
            if trouble:
                return str(trouble)
    except OSError as error:
        return "%s: %s" % (folder, error.strerror)  # noqa: UP031
    return ""


def mark_used(folder: str) -> None:
    """Let its time show when it was last wanted: ``tidy_program.py`` removes what is not."""
    try:
        os.utime(folder)
    except OSError:
        pass


def main() -> None:
    """Look, and print the answer."""
    folder = os.path.abspath(os.path.expanduser(sys.argv[1]))
    tag = sys.implementation.cache_tag
    used = [x for x in sys.argv[2].split(",") if x and os.path.lexists(os.path.join(folder, x))]
    trouble = ours(folder, [*FOLDERS, "modules/" + tag, *used])
    for name in [] if trouble else used:
        mark_used(os.path.join(folder, name))
    brought = os.path.join(folder, "modules", tag)
    first, last = ([x for x in each.split(",") if x] for each in sys.argv[3].split(";"))
    if not trouble:
        sys.path[:0] = [os.path.join(brought, x) for x in first]
        sys.path += [os.path.join(brought, x) for x in last]
    answer = {
        "python": python_facts(),  # type: ignore[name-defined]  # noqa: F821 - goes before this
        "version": list(sys.version_info[:3]),
        "executable": sys.executable,
        "folder": folder,
        "folder_trouble": trouble,
        "missing": {name: trouble_with(name) for name in sys.argv[4:]},
        "versions": versions,
        "code": [] if trouble else names_in(os.path.join(folder, "code")),
        "runtime": [] if trouble else whole(os.path.join(folder, "runtime")),
        "modules": [] if trouble else names_in(brought),
    }
    print(json.dumps(answer))  # noqa: T201 - that is the answer


if __name__ == "__main__":
    main()
