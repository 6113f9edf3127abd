"""The verb ``tidy``: removes code, runtimes and modules that nobody has used for long.

A tree stays, however old, if an experiment there names it or a process of that machine uses it;
homes may be shared by several machines, so a tree that an experiment names counts wherever its
agent runs.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import sys
from typing import Any

from .facts import folder_trouble
from .processes import process_texts

#: Trees on their way out, under a name that nobody looks for.
GONE = ".gone-"

#: As many modules belong to one runtime.
MODULES = 6


def named(folder: str) -> dict[str, set[str] | None]:
    """The trees that agents' configurations name, by kind; None where that cannot be known: an
    agent takes its configuration away when its experiment is over there."""
    trees: dict[str, set[str]] = {"code": set(), "runtime": set(), "modules": set()}
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
            return dict.fromkeys(trees, None)
        for kind in paths:
            trees[kind].update(map(os.path.basename, paths[kind]))
    return dict(trees)


def last_use(path: str) -> float:
    """The time when a tree was last wanted: the verb ``probe`` sets it."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def is_tree(path: str) -> bool:
    """Whether it is one of ours, which are called by their digests."""
    name = os.path.basename(path)
    return len(name) == 64 and not set(name) - set("0123456789abcdef") and os.path.isdir(path)


def tidy(place: str, used: set[str], most: int, texts: bytes) -> list[str]:
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


def answer(arguments: dict[str, Any]) -> dict[str, list[str]]:
    """Tidy; returns what went, by kind.

    Arguments: ``work_folder``; ``keep``, how many of each stay; ``trees`` that are about to be
    used, which stay, too.
    """
    folder, most = os.path.abspath(os.path.expanduser(arguments["work_folder"])), arguments["keep"]
    if os.path.isdir(folder):
        trouble = folder_trouble(folder)
        if trouble:
            sys.exit(trouble)
    used = named(folder)
    texts = process_texts()
    about = set(map(os.path.basename, arguments["trees"]))
    gone: dict[str, list[str]] = {"code": [], "runtime": [], "modules": []}
    for kind in ("code", "runtime"):
        place, names = os.path.join(folder, kind), used[kind]
        if names is not None and os.path.isdir(place):
            gone[kind] = tidy(place, names | about, most, texts)
    modules = used["modules"]
    if modules is not None:
        for place in glob.glob(os.path.join(glob.escape(folder), "modules", "*", "")):
            gone["modules"] += tidy(place, modules | about, most * MODULES, texts)
    return gone
