"""Names of 0.1.0 that stand where modules have moved, until processes of it can be no more.

An installer replaces files beneath agents, trials and heads that run. What these import late by
name has to be there: ``tests/upgrade/test_swap.py`` shows it. Here: that what stands there is no
more than a name, and that no code of ours uses it.
"""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from dispatcher import __version__
from tests.arch.test_rooms import PACKAGES, ROOT, files
from tests.arch.trees import nodes_of

#: A version that says so is two after the one whose names they are.
GONE_WITH = "goes with 0.3"

FORMER = [path for path in files("trial_runtime") if GONE_WITH in path.read_text().split("\n")[0]]

#: They do more than pass names on: no cache for older readers, room for packages, a file and a
#: folder that are known by a path.
NO_MODULES = {
    "weights/cache_place.py",
    "weights/former.py",
    "agent/warden.py",
    "nni_shim/nni/__init__.py",
}

#: Imported for what it does, before anything that needs it.
ROOM = "trial_runtime.weights.former"


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def test_they_are_found() -> None:
    assert {path.relative_to(ROOT / "trial_runtime").as_posix() for path in FORMER} > NO_MODULES
    assert len(FORMER) > 20


def test_their_time_has_not_come() -> None:
    """Then they all go, with ``tests/upgrade/test_swap.py`` and what .importlinter has of them."""
    assert tuple(int(part) for part in __version__.split(".")[:2]) < (0, 3)


@pytest.mark.parametrize("path", FORMER, ids=name_of)
def test_each_passes_names_on_and_no_more(path: Path) -> None:
    """Mutations: code of its own; a name that is not there any more, or not from where it says."""
    if path.relative_to(ROOT / "trial_runtime").as_posix() in NO_MODULES:
        return
    module = importlib.import_module(name_of(path))
    for node in ast.parse(path.read_text()).body[1:]:
        if isinstance(node, ast.Import):
            assert [alias.name for alias in node.names] == [ROOM]
            continue
        assert isinstance(node, ast.ImportFrom)
        assert node.module is not None
        assert node.module.startswith("trial_runtime.")
        assert node.module not in map(name_of, FORMER)
        for alias in node.names:
            assert alias.asname == alias.name
            there = getattr(importlib.import_module(node.module), alias.name)
            assert getattr(module, alias.name) is there


def test_no_code_of_ours_uses_them() -> None:
    """Mutation: a module of the product that imports one of them."""
    former = {name_of(path) for path in FORMER} - {"trial_runtime.weights.former"}
    using = {}
    for path in files(*PACKAGES):
        if path in FORMER or "nni_shim" in path.parts:
            continue
        for node in nodes_of(path.read_text()):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                named = {alias.name for alias in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = set(re.findall(r"from (trial_runtime\.[a-z_.]+) import", node.value))
            else:
                continue
            if named & former:
                using[str(path)] = named & former
    assert not using
