"""Run by another machine's Python, behind ``python_facts.py`` and ``said_program.py``: removes
code, runtimes and modules that nobody has used for long.

Arguments: the work folder, how many of each to keep, and what is about to be used (with commas
between). Says as JSON which went. What an experiment there names is kept, however old, and what a
process of that machine uses; homes may be shared by several machines, so what an experiment names
counts wherever its agent runs.
"""

import glob
import json
import os
import shutil
import sys

#: Trees on their way out, under a name that nobody looks for.
GONE = ".gone-"

#: As many modules belong to one runtime.
MODULES = 6


def named(folder: str) -> dict:  # type: ignore[type-arg]
    """By kind, the trees that agents were told of, and None where that cannot be known: an agent
    takes its configuration away when its experiment is over there."""
    found: dict = {"code": set(), "runtime": set(), "modules": set()}  # type: ignore[type-arg]
    for path in glob.glob(os.path.join(glob.escape(folder), "experiments/*/*/agent-*.config.json")):
        try:
            with open(path, "rb") as file:
                told = json.loads(file.read().decode())
            trees = {
                "code": [told["trial"]["code_directory"]],
                "runtime": [told["runtime"]],
                "modules": told.get("modules", []),
            }
        except (OSError, ValueError, KeyError, TypeError):
            return dict.fromkeys(found)
        for kind in trees:
            found[kind].update(map(os.path.basename, trees[kind]))
    return found


def last_use(path: str) -> float:
    """When it was last wanted: who wants it says so by its time."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def is_tree(path: str) -> bool:
    """Whether it is one of ours, which are called by their digests."""
    name = os.path.basename(path)
    return len(name) == 64 and not set(name) - set("0123456789abcdef") and os.path.isdir(path)


def tidy(place: str, used: set, most: int, said: bytes) -> list:  # type: ignore[type-arg]
    """Remove what is too much in one folder; their names."""
    paths = [os.path.join(place, name) for name in os.listdir(place)]
    trees = [path for path in paths if is_tree(path)]
    trees.sort(key=last_use, reverse=True)
    gone = []
    spellings = (os.path.abspath, os.path.realpath)  # working directories are told without links
    for path in trees[most:]:
        name = os.path.basename(path)
        if name in used or any(os.fsencode(spell(path)) in said for spell in spellings):
            continue
        try:  # half a tree must not be taken for a whole one
            os.rename(path, os.path.join(place, GONE + name))
        except OSError:
            continue  # somebody else was quicker
        gone.append(name)
    for name in os.listdir(place):
        if name.startswith(GONE):
            shutil.rmtree(os.path.join(place, name), ignore_errors=True)
    return gone


def main() -> None:
    """Tidy, and say what went."""
    folder, most = os.path.abspath(os.path.expanduser(sys.argv[1])), int(sys.argv[2])
    if os.path.isdir(folder):
        trouble = folder_trouble(folder)  # type: ignore[name-defined]  # noqa: F821
        if trouble:
            sys.exit(trouble)
    used = named(folder)
    said = said_by_processes()  # type: ignore[name-defined]  # noqa: F821 - goes before this
    about = set(map(os.path.basename, sys.argv[3].split(",")))
    told = {}
    for kind in ("code", "runtime"):
        place = os.path.join(folder, kind)
        known = used[kind] is not None and os.path.isdir(place)
        told[kind] = tidy(place, used[kind] | about, most, said) if known else []
    told["modules"] = []
    if used["modules"] is not None:
        for place in glob.glob(os.path.join(glob.escape(folder), "modules", "*", "")):
            told["modules"] += tidy(place, used["modules"] | about, most * MODULES, said)
    print(json.dumps(told))  # noqa: T201 - that is the answer


if __name__ == "__main__":
    main()
