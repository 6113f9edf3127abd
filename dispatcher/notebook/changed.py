"""Changes that a notebook has made since the text of a definition ran, and which it does not have.

A default keeps the value that its variable had at that moment, as of a function that a loop has
made. Later cells set attributes of classes, such as those of a class of settings.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from types import FunctionType
from typing import Any, Final, NamedTuple

from dispatcher.notebook.sources import CellSource

_MISSING: Final = object()


def changed_defaults(function: FunctionType, source: CellSource) -> dict[str, str | None]:
    """Return the defaults of a function by the names of its arguments, if the text would make other
    ones by now: the text of each, or None where the value of the function counts.

    Args:
        function: without decorators.
        source: of it.
    """
    shown, changed = {}, False
    for name, node, value in _defaults(function, source):
        other = _is_other(node, value, source)
        shown[name] = None if other else ast.unparse(node)
        changed |= other
    return shown if changed else {}


def _defaults(function: FunctionType, source: CellSource) -> Iterator[tuple[str, ast.expr, object]]:
    tree = ast.parse("\n".join(source.lines))
    given = next(node for node in ast.walk(tree) if isinstance(node, ast.arguments))
    values = function.__defaults__ or ()
    positional = [*given.posonlyargs, *given.args][-len(values) :] if values else []
    if len(values) == len(given.defaults):  # else somebody has replaced them
        for argument, node, value in zip(positional, given.defaults, values, strict=True):
            yield argument.arg, node, value
    by_name = function.__kwdefaults__ or {}
    for argument, keyword in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if keyword is not None and argument.arg in by_name:
            yield argument.arg, keyword, by_name[argument.arg]


def _is_other(node: ast.expr, value: object, source: CellSource) -> bool:
    """Whether a default may be another one if its text runs now. Objects that a call in it has made
    are made anew, and stay what they were."""
    if isinstance(node, ast.Name):
        now = source.namespace.get(node.id, getattr(builtins, node.id, _MISSING))
        return now is not value
    return type(value) in (bool, int, float, str, bytes) and _constant(node) is _MISSING


class ChangedAttribute(NamedTuple):
    """An attribute of a class; ``new`` if the class's text has nothing of this name."""

    name: str
    value: Any
    new: bool


def changed_attributes(owner: type, source: CellSource) -> Iterator[ChangedAttribute]:
    """Yield the attributes of a class that were set, or changed, after its text ran.

    Private ones and those of a metaclass's or a decorator's making are not looked at.

    Args:
        owner: the class.
        source: of it.
    """
    if type(owner) is not type:
        return
    node = ast.parse("\n".join(source.lines)).body[0]
    assert isinstance(node, ast.ClassDef)
    written, names = _constants(node), _names(source)
    for name, value in vars(owner).items():
        if name.startswith("_"):
            continue
        if isinstance(value, FunctionType):  # one of the class's own text has a dot in its name
            if value.__module__ == "__main__" and "." not in value.__qualname__:
                yield ChangedAttribute(name, value, name not in names)
        elif hasattr(type(value), "__get__"):
            continue  # such as a property, or a slot
        elif name in written:
            before = written[name]
            if type(value) is not type(before) or repr(value) != repr(before):
                yield ChangedAttribute(name, value, new=False)
        elif name not in names and not node.decorator_list:
            yield ChangedAttribute(name, value, new=True)


def _names(source: CellSource) -> set[str]:
    """Return all names that stand in the body of a class."""
    tables = [symtable.symtable("\n".join(source.lines), "class", "exec")]
    for table in tables:
        if table.get_type() == "class":
            return set(table.get_identifiers())
        tables.extend(table.get_children())
    return set()


def _constants(node: ast.ClassDef) -> dict[str, object]:
    """Return what the body of a class sets once, to a constant."""
    stores = [
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store | ast.Del)
    ]
    constants: dict[str, object] = {}
    for each in node.body:
        targets: list[ast.expr] = []
        if isinstance(each, ast.Assign):
            targets = each.targets
        elif isinstance(each, ast.AnnAssign):
            targets = [each.target]
        value = each.value if isinstance(each, ast.Assign | ast.AnnAssign) else None
        for target in targets:
            if value is not None and isinstance(target, ast.Name) and stores.count(target.id) == 1:
                constant = _constant(value)
                if constant is not _MISSING:
                    constants[target.id] = constant
    return constants


def _constant(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _MISSING
