"""Whether a class of the author's takes the arguments of a file, by its text: nothing is imported.

Only what is sure is reported. A class that is decorated, made by a metaclass or a ``__new__``, or
whose constructor comes from another module, is left to the tuner's process, which builds it.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

#: Where it is wrong: an argument's name, "" for the arguments, None for the class; what; a hint.
Misfit = tuple[str | None, str, str]

#: Values that are no class for sure.
_NO_CLASS = (ast.Constant, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.JoinedStr, ast.Lambda)


def class_misfits(source: Path, name: str, arguments: Mapping[str, Any]) -> Iterator[Misfit]:
    """Yield what is wrong with a class, or with its arguments; nothing if that may fit.

    Args:
        source: the module's file.
        name: the class, at the module's top level.
        arguments: those of the file.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.read_bytes(), str(source))
    except (SyntaxError, ValueError, RecursionError, OSError):
        return  # said before
    found = _only_binding(tree, name)
    if found is None:
        return
    if _is_no_class(found):
        line = getattr(found, "lineno", 0)
        yield None, f"names {name!r}, which is no class: {source.name}:{line}", ""
    if isinstance(found, ast.ClassDef):
        constructor = _constructor(tree, found, set())
        if constructor is not None:
            yield from _against(name, constructor.args, arguments)


def _only_binding(tree: ast.Module, name: str) -> ast.AST | None:
    """The one statement that gives the name its meaning; None if there are several, or none."""
    found: list[ast.AST] = []
    assigned: list[ast.Assign] = []
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if node.name == name:
                    found.append(node)
            case ast.Import() | ast.ImportFrom():
                names = [(each.asname or each.name).partition(".")[0] for each in node.names]
                if name in names or "*" in names:
                    found.append(node)
            case ast.Name(id=bound, ctx=ast.Store()) if bound == name:
                found.append(node)
            case ast.Assign(targets=[ast.Name(id=bound)]) if bound == name:
                assigned.append(node)
    if len(found) != 1:
        return None
    if isinstance(found[0], ast.Name):
        return assigned[0] if assigned else None
    return found[0]


def _is_no_class(found: ast.AST) -> bool:
    if isinstance(found, ast.Assign):
        return isinstance(found.value, _NO_CLASS)
    plain = isinstance(found, ast.FunctionDef) and not found.decorator_list
    return plain or isinstance(found, ast.AsyncFunctionDef)


def _constructor(tree: ast.Module, owner: ast.ClassDef, seen: set[str]) -> ast.FunctionDef | None:
    """The ``__init__`` that building the class calls, if that is sure."""
    if owner.decorator_list or owner.keywords or owner.name in seen:
        return None
    seen.add(owner.name)
    own = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}
    if "__new__" in own:
        return None
    if "__init__" in own:
        found = own["__init__"]
        return None if found.decorator_list else found
    if len(owner.bases) != 1 or not isinstance(owner.bases[0], ast.Name):
        return None
    above = _only_binding(tree, owner.bases[0].id)
    return _constructor(tree, above, seen) if isinstance(above, ast.ClassDef) else None


def _against(name: str, taken: ast.arguments, given: Mapping[str, Any]) -> Iterator[Misfit]:
    if taken.posonlyargs or not taken.args:
        return
    positional = [each.arg for each in taken.args][1:]  # without self
    legal = [*positional, *(each.arg for each in taken.kwonlyargs)]
    if taken.kwarg is None:
        for each in given:
            if each not in legal:
                near = difflib.get_close_matches(each, legal, 1)
                listed = ", ".join(legal) or "none"
                guess = f"did you mean {near[0]!r}?" if near else f"it takes: {listed}"
                yield each, f"is no argument of {name}", guess
    optional = positional[len(positional) - len(taken.defaults) :] if taken.defaults else []
    optional += [
        each.arg
        for each, default in zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
        if default is not None
    ]
    for each in legal:
        if each not in given and each not in optional:
            yield "", f"lacks {each!r}, which {name} needs", f"add {each} under classArgs"
