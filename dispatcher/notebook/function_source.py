"""Functions and classes of a notebook, written out as a module that another process imports.

No pickle: what is written is source text that a person can read and run. The definition is
found by file and line, the globals that it uses are followed, and each becomes an import, a
definition of its own, or a literal. What is none of these is refused by name.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import math
import symtable
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any

from dispatcher.errors import UserError
from trial_runtime.namesakes import users_own

#: Larger literals are data, and belong into a file.
_MOST_LITERAL = 100_000

Definition = FunctionType | type


def is_importable(thing: Definition) -> bool:
    """Whether ``module:name`` leads another process to it."""
    module = users_own(sys.modules.get(thing.__module__))
    if thing.__module__ == "__main__" or getattr(module, "__file__", None) is None:
        return False
    member: Any = module
    for part in thing.__qualname__.split("."):
        member = getattr(member, part, None)
    return member is thing


def import_folder(module_name: str) -> Path:
    """Return the folder from which a loaded module is imported by its full name."""
    module = users_own(sys.modules[module_name])
    file = Path(str(module.__file__)).resolve()
    above = module_name.count(".") + (1 if file.name == "__init__.py" else 0)
    return file.parents[above]


def check_stands_alone(thing: object, what: str) -> Definition:
    """Return it if another process can have it at all.

    Args:
        thing: given by the author.
        what: ``trial`` or ``tuner``, for the error.

    Raises:
        UserError: a lambda, a closure, a method, an object.
    """
    if isinstance(thing, type):
        functions = [each for each in vars(thing).values() if isinstance(each, FunctionType)]
    elif isinstance(thing, FunctionType):
        functions = [thing]
    else:
        kind = "function" if what == "trial" else "class"
        raise UserError(
            f"the {what} is an object of {type(thing).__name__}, and another process cannot have "
            "it",
            hint=f"give the {kind} itself; what it needs goes into its arguments",
        )
    if getattr(thing, "__name__", "") == "<lambda>":
        raise UserError(f"the {what} is a lambda", hint="define it with 'def' and a name")
    taken = {name for each in functions for name in each.__code__.co_freevars} - {"__class__"}
    if taken or "<locals>" in thing.__qualname__:
        uses = f" and uses {', '.join(sorted(taken))} of it" if taken else ""
        raise UserError(
            f"the {what} {thing.__name__!r} is defined inside another function{uses}, which "
            "another process cannot have",
            hint="define it at the top level of the notebook or module, and give what it needs "
            "as parameters or arguments",
        )
    return thing


def module_source(thing: Definition, preamble: str = "") -> str:
    """Return the text of a module that defines ``thing`` and everything it uses.

    Args:
        thing: passed by :func:`check_stands_alone`.
        preamble: lines to run before all imports.

    Raises:
        UserError: its source is not to be had, or it uses a global that is neither a
            module, nor a function or class, nor plain data.
    """
    written = _Module()
    written.define(thing.__name__, thing)
    head = "# Written by bequeath from a notebook or script; edit it there.\n"
    return "\n".join([head + preamble, *written.imports, *written.pieces]) + "\n"


class _Module:
    """A module that grows: what a definition needs is written before it."""

    def __init__(self) -> None:
        self.imports: list[str] = []
        self.pieces: list[str] = []
        self._known: dict[str, int] = {}  # name → id of what it stands for

    def define(self, name: str, thing: Definition) -> None:
        """Write a definition after all that it uses."""
        if self._known.setdefault(name, id(thing)) != id(thing):
            return
        source, namespace = _definition(thing)
        for used in sorted(_globals_used(source)):
            if used in namespace:
                self._provide(used, namespace[used], user=thing.__name__)
        self.pieces.append(f"\n\n{source}")
        if name != thing.__name__:
            self.pieces.append(f"{name} = {thing.__name__}")

    def _provide(self, name: str, value: Any, *, user: str) -> None:
        if name in self._known or getattr(builtins, name, None) is value:
            return
        if isinstance(value, FunctionType | type) and not _from_elsewhere(value):
            self.define(name, value)
            return
        self._known[name] = id(value)
        if isinstance(value, ModuleType):
            alias = "" if name == value.__name__ else f" as {name}"
            self.imports.append(f"import {value.__name__}{alias}")
        elif (origin := _origin(value)) is not None:
            alias = "" if name == origin[1] else f" as {name}"
            self.imports.append(f"from {origin[0]} import {origin[1]}{alias}")
        elif _is_plain(value) and len(text := repr(value)) <= _MOST_LITERAL:
            if isinstance(value, PurePath):
                self.imports.append("import pathlib")
                text = f"pathlib.{text.replace('PosixPath', 'Path')}"
            self.pieces.append(f"{name} = {text}")
        else:
            raise UserError(
                f"{user!r} uses the global {name!r} ({type(value).__name__}), which another "
                "process cannot have",
                hint="make it inside the function, read it from a file there, or put both into "
                "a module",
            )


def _from_elsewhere(value: Definition) -> bool:
    return is_importable(value) or getattr(builtins, value.__name__, None) is value


def _origin(value: Any) -> tuple[str, str] | None:
    """Module and name that it can be imported by."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    if getattr(users_own(sys.modules.get(module)), name, None) is value:
        return module, name
    return None


def _is_plain(value: Any) -> bool:
    """Whether its ``repr`` gives an equal value back."""
    if isinstance(value, float):
        return math.isfinite(value)
    if value is None or type(value) in (bool, int, str, bytes) or isinstance(value, PurePath):
        return True
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    return False


def _definition(thing: Definition) -> tuple[str, Mapping[str, Any]]:
    """The source text of a function or class, and the globals it sees."""
    for function in _functions_of(thing):
        filename = function.__code__.co_filename
        lines = linecache.getlines(filename, function.__globals__)
        source = _find(lines, thing.__name__, function.__code__)
        if source is not None:
            return source, function.__globals__
    raise UserError(
        f"the source of {thing.__name__!r} is not to be had",
        hint="run its cell (or script) again if it was edited since; definitions typed at a "
        "prompt or made by exec are not kept",
    )


def _functions_of(thing: Definition) -> Iterator[FunctionType]:
    if isinstance(thing, FunctionType):
        yield thing
        return
    for each in vars(thing).values():
        inner: Callable[..., Any] | Any = getattr(each, "__func__", each)
        inner = getattr(inner, "fget", inner)
        if isinstance(inner, FunctionType) and inner.__module__ == thing.__module__:
            yield inner


def _find(lines: list[str], name: str, code: CodeType) -> str | None:
    """The definition called ``name`` that holds the line on which the code begins."""
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        last = node.end_lineno or node.lineno
        if node.name == name and first <= code.co_firstlineno <= last:
            return textwrap.dedent("".join(lines[first - 1 : last])).rstrip()
    return None


def _globals_used(source: str) -> set[str]:
    """Names that a definition looks up in its module, wherever in it."""
    names: set[str] = set()
    tables = [symtable.symtable(source, "definition", "exec")]
    while tables:
        table = tables.pop()
        tables.extend(table.get_children())
        for symbol in table.get_symbols():
            top = table.get_type() == "module"
            outside = not symbol.is_assigned() if top else symbol.is_global()
            if symbol.is_referenced() and outside:
                names.add(symbol.get_name())
    return names
