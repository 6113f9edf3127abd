"""Finds Python modules and the names they define without running a line of them."""

from __future__ import annotations

import ast
import difflib
import importlib.machinery
import importlib.util
import os
import warnings
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """The place of a module; ``source`` is None for one that has no Python text to read."""

    source: Path | None


def find_module(module: str, folder: Path | None) -> ModuleSource | None:
    """Find a dotted module below ``folder``, else in this environment; import nothing.

    Returns None if there is no such module.
    """
    parts = module.split(".")
    if folder is not None:
        here = _module_below([folder], parts)
        if here is not None:
            return here
    try:
        # Only the first part: for a dotted name the import system imports its parents.
        spec = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if len(parts) == 1:
        text = spec.origin is not None and spec.origin.endswith(".py")
        return ModuleSource(Path(spec.origin) if text and spec.origin else None)
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    return _module_below(places, parts[1:])


def _module_below(folders: list[Path], parts: list[str]) -> ModuleSource | None:
    for folder in folders:
        base = folder.joinpath(*parts)
        for candidate in (base / "__init__.py", base.with_name(base.name + ".py")):
            if os.path.isfile(candidate):
                return ModuleSource(candidate)
        for ending in importlib.machinery.EXTENSION_SUFFIXES:
            if os.path.isfile(base.with_name(base.name + ending)):
                return ModuleSource(None)
    return None


def missing_name(source: Path, name: str) -> tuple[str, str] | None:
    """Say why ``source`` does not define ``name``, as sentence and hint; None if it may.

    Any binding anywhere in the file counts, and a star import or a module-level
    ``__getattr__`` may bring anything: only a sure miss is reported.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.read_bytes(), str(source))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        return f"is in {source}{line}, which is not Python: {reason}", ""
    except OSError as error:
        return f"is in {source}, which cannot be read: {error.strerror}", ""
    bound = _bound_names(tree)
    if name in bound or "*" in bound or "__getattr__" in bound:
        return None
    near = difflib.get_close_matches(name, [n for n in bound if not n.startswith("_")], 1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return f"is not in {source}: nothing there is called {name!r}{guess}", ""


def _bound_names(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.Import() | ast.ImportFrom():
                names.update(a.asname or a.name.partition(".")[0] for a in node.names)
            case _:
                pass
    return names
