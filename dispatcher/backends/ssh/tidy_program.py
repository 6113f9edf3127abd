"""Removes code, runtimes and modules that nobody has used for long: run by a machine's Python,
behind ``python_facts.py`` and ``processes_program.py``.

Arguments: the work folder, how many of each to keep, and trees that are about to be used (with
commas between). Prints as JSON which went. A tree stays, however old, if an experiment there names
it or a process of that machine uses it; homes may be shared by several machines, so a tree that an
experiment names counts wherever its agent runs.
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
    """The trees that agents' configurations name, by kind; None where that cannot be known: an
    agent takes its configuration away when its experiment is over there."""
    trees: dict = {"code": set(), "runtime": set(), "modules": set()}  # type: ignore[type-arg]
    for path in glob.glob(os.path.join(glob.escape(folder), "experiments/*/*/agent-*.config.json")):
        try:
            with open(path, "rb") as file:
                config = json.loads(file.read().decode())
            paths = {
                "code": [config["trial"]["code_directory"]],
                "runtime": [config["runtime"]],
                "modules": config.get("modules", []),
            }
        except (OSError, ValueError, KeyError, TypeError):
            return dict.fromkeys(trees)
        for kind in paths:
            trees[kind].update(map(os.path.basename, paths[kind]))
    return trees


def last_use(path: str) -> float:
    """The time when a tree was last wanted: ``probe_program.py`` sets it."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def is_tree(path: str) -> bool:
    """Whether it is one of ours, which are called by their digests."""
    name = os.path.basename(path)
    return len(name) == 64 and not set(name) - set("0123456789abcdef") and os.path.isdir(path)


def tidy(place: str, used: set, most: int, texts: bytes) -> list:  # type: ignore[type-arg]
    """Remove trees that are too many in one folder; returns their names.

    Args:
        place: the folder.
        used: names of trees that stay.
        most: how many stay.
        texts: of processes; a tree that is named in them stays, too.
    """
    paths = [os.path.join(place, name) for name in os.listdir(place)]
    trees = [path for path in paths if is_tree(path)]
    trees.sort(key=last_use, reverse=True)
    gone = []
    spellings = (os.path.abspath, os.path.realpath)  # working directories are known without links
    for path in trees[most:]:
        name = os.path.basename(path)
        if name in used or any(os.fsencode(spell(path)) in texts for spell in spellings):
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
    """Tidy, and print what went."""
    folder, most = os.path.abspath(os.path.expanduser(sys.argv[1])), int(sys.argv[2])
    if os.path.isdir(folder):
        trouble = folder_trouble(folder)  # type: ignore[name-defined]  # noqa: F821
        if trouble:
            sys.exit(trouble)
    used = named(folder)
    texts = process_texts()  # type: ignore[name-defined]  # noqa: F821 - goes before this
    about = set(map(os.path.basename, sys.argv[3].split(",")))
    gone = {}
    for kind in ("code", "runtime"):
        place = os.path.join(folder, kind)
        known = used[kind] is not None and os.path.isdir(place)
        gone[kind] = tidy(place, used[kind] | about, most, texts) if known else []
    gone["modules"] = []
    if used["modules"] is not None:
        for place in glob.glob(os.path.join(glob.escape(folder), "modules", "*", "")):
            gone["modules"] += tidy(place, used["modules"] | about, most * MODULES, texts)
    print(json.dumps(gone))  # noqa: T201 - that is the answer


if __name__ == "__main__":
    main()
