"""Python modules by their text alone: where they are, what they define, what their classes take.

Nothing is imported, and only what is sure is reported. Of a class that is decorated, made by a
metaclass or a ``__new__``, that has a base from a module that we do not know, or whose name or
constructor the module gives in any other way than by a statement at its top, nothing is said: the
tuner's process builds it.
"""

from __future__ import annotations

import ast
import difflib
import importlib.machinery
import importlib.util
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Where it is wrong: an argument's name, "" for the arguments, None for the class; what; a hint.
ClassMisfit = tuple[str | None, str, str]

#: Values that are no class for sure.
_NO_CLASS = (ast.Constant, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.JoinedStr, ast.Lambda)

#: Names by which a class says how it, or one below it, is built.
_BUILDING = frozenset({"__init__", "__new__", "__init_subclass__"})

#: Packages whose classes build those below them in no way of their own.
_KNOWN = frozenset({"tuners", "nni", "abc", "typing"})

#: The folder in which our packages lie.
_ROOT = Path(__file__).parents[2]


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
    # The user's may have the name of a package of ours, which is there all the same.
    return _module_below(places, parts[1:]) or _module_below([_ROOT], parts)


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
        tree = _parsed(source)
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


def class_misfits(source: Path, name: str, arguments: Mapping[str, Any]) -> Iterator[ClassMisfit]:
    """Yield what is wrong with a class, or with its arguments; nothing if that may fit.

    Args:
        source: the module's file.
        name: the class, at the module's top level.
        arguments: those of the file.
    """
    try:
        tree = _parsed(source)
    except (SyntaxError, ValueError, RecursionError, OSError):
        return  # another check has reported it
    binding = _only_binding(tree, name)
    if binding is None:
        return
    if _is_no_class(binding):
        line = getattr(binding, "lineno", 0)
        yield None, f"names {name!r}, which is no class: {source.name}:{line}", ""
    if isinstance(binding, ast.ClassDef):
        constructor = _constructor(tree, binding)
        if constructor is not None:
            yield from _against(name, constructor.args, arguments)


def _parsed(source: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source.read_bytes(), str(source))


def _only_binding(tree: ast.Module, name: str) -> ast.stmt | None:
    """Return the one statement that binds the name, at the top of the module.

    None if there are several, or the name may be bound otherwise as the module runs.
    """
    bindings = [node for node in ast.walk(tree) if _binds(node, name)]
    for statement in tree.body:
        target = statement
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]  # type: ignore[assignment]
        if bindings == [target]:
            return statement
    return None


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name == name
        case ast.Import() | ast.ImportFrom():
            names = [(each.asname or each.name).partition(".")[0] for each in node.names]
            return name in names or "*" in names
        case ast.Name(id=bound, ctx=ast.Store() | ast.Del()):
            return bound == name
        case ast.Call():  # setattr(module, "Name", …), globals().update(Name=…)
            texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
            return name in texts or name in [each.arg for each in node.keywords]
        case ast.Subscript(slice=ast.Constant(value=text), ctx=ast.Store()):
            return text == name  # globals()["Name"] = …
        case _:
            return False


def _is_no_class(binding: ast.AST) -> bool:
    if isinstance(binding, ast.Assign):
        return isinstance(binding.value, _NO_CLASS)
    plain = isinstance(binding, ast.FunctionDef) and not binding.decorator_list
    return plain or isinstance(binding, ast.AsyncFunctionDef)


def _constructor(tree: ast.Module, owner: ast.ClassDef) -> ast.FunctionDef | None:
    """Return the ``__init__`` that building the class calls, if that is sure."""
    if any(map(_changes_classes, ast.walk(tree))) or not _is_plain(tree, owner, frozenset()):
        return None
    while not _parts_of_building(owner):
        if len(owner.bases) != 1 or not isinstance(owner.bases[0], ast.Name):
            return None
        above = _only_binding(tree, owner.bases[0].id)
        if not isinstance(above, ast.ClassDef):
            return None
        owner = above
    return next(each for each in owner.body if isinstance(each, ast.FunctionDef) and _builds(each))


def _changes_classes(node: ast.AST) -> bool:
    """Whether a node is ``Mine.__init__ = …``, or such a name as text, as ``setattr`` takes it."""
    match node:
        case ast.Attribute(attr=name, ctx=ast.Store()):
            return name in _BUILDING
        case ast.Constant(value=str(text)):
            return text in _BUILDING
        case _:
            return False


def _is_plain(tree: ast.Module, owner: ast.ClassDef, below: frozenset[str]) -> bool:
    """Whether nothing but one plain ``__init__`` decides how the class is built.

    Decorators and metaclasses, its own or those of its bases, may decide otherwise.
    """
    if owner.decorator_list or owner.keywords or owner.name in below:
        return False
    parts = _parts_of_building(owner)
    plain = [each for each in owner.body if isinstance(each, ast.FunctionDef) and _builds(each)]
    if parts != plain or len(parts) > 1:
        return False
    if any(each.name != "__init__" or each.decorator_list for each in plain):
        return False
    return all(_is_plain_base(tree, base, below | {owner.name}) for base in owner.bases)


def _is_plain_base(tree: ast.Module, base: ast.expr, below: frozenset[str]) -> bool:
    root = base.value if isinstance(base, ast.Subscript) else base  # Generic[…]
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    match _only_binding(tree, root.id):
        case ast.ClassDef() as above:
            return root is base and _is_plain(tree, above, below)
        case ast.ImportFrom(module=str(module), level=0):
            return module.partition(".")[0] in _KNOWN
        case ast.Import(names=names):
            return all(each.name.partition(".")[0] in _KNOWN for each in names)
        case _:
            pass
    return root.id == "object" and not any(_binds(node, "object") for node in ast.walk(tree))


def _parts_of_building(owner: ast.ClassDef) -> list[ast.AST]:
    """Return the nodes in a class, at any depth, that bind a name by which classes are built."""
    return [node for node in ast.walk(owner) if _builds(node)]


def _builds(node: ast.AST) -> bool:
    return any(_binds(node, name) for name in _BUILDING)


def _against(name: str, taken: ast.arguments, given: Mapping[str, Any]) -> Iterator[ClassMisfit]:
    if taken.posonlyargs or not taken.args:
        return
    if any(each.arg.startswith("__") for each in (*taken.args, *taken.kwonlyargs)):
        return  # Python calls it otherwise from outside
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
