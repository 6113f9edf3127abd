"""Functions and classes of a notebook, written out as a module that another process imports.

No pickle: what is written is source text that a person can read and run. The definition is
found by file and line, the globals that it uses are followed, and each becomes an import, a
definition of its own, a literal, or a file of data. Variables of functions around it become those
of a function that is written around it. What is none of these is refused by name.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import Any

from dispatcher.errors import UserError
from dispatcher.notebook.changed import changed_attributes, changed_defaults
from dispatcher.notebook.misfit import CannotTravel
from dispatcher.notebook.sources import (
    EMPTY,
    CellSource,
    Definition,
    contents_of,
    indented,
    source_of,
    unwrapped,
)
from dispatcher.notebook.values import DATA_NAME, CellValues, origin_of
from trial_runtime.cells import LINES, CellData
from trial_runtime.namesakes import users_own


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


def folder_beside(thing: Definition) -> Path:
    """Return the folder from which its program imports: that of its script, or the current one."""
    main = sys.modules.get(thing.__module__)
    file = getattr(main, "__file__", None)
    is_script = thing.__module__ == "__main__" and getattr(main, "__spec__", None) is None
    return Path(file).resolve().parent if file and is_script else Path.cwd()


def check_stands_alone(thing: object, what: str) -> Definition:
    """Return it if another process can have it at all.

    Args:
        thing: given by the author.
        what: ``trial`` or ``tuner``, for the error.

    Raises:
        UserError: a lambda, a method, an object, a function that is called in another way.
    """
    wanted: type = type if what == "tuner" else FunctionType
    if not isinstance(thing, wanted):
        kind = "class" if what == "tuner" else "function"
        if isinstance(thing, type | FunctionType):
            raise UserError(
                f"the {what} {thing.__name__!r} is no {kind}",
                hint=f"give a {kind}: {what}={'MyTuner' if what == 'tuner' else 'my_trial'}",
            )
        hint = f"give the {kind} itself; what it needs goes into its arguments"
        if what == "tuner" and isinstance(thing, Mapping):
            hint = "give a name and arguments: tuner='PBT', tuner_args={'population_size': 8}"
        raise UserError(
            f"the {what} is an object of {type(thing).__name__}, and another process cannot have "
            "it",
            hint=hint,
        )
    assert isinstance(thing, type | FunctionType)
    if thing.__name__ == "<lambda>":
        raise UserError(f"the {what} is a lambda", hint="define it with 'def' and a name")
    if isinstance(thing, FunctionType):
        _check_call(thing)
    return thing


def _check_call(function: FunctionType) -> None:
    """Refuse a function that no call with one argument, or without, gives a result of."""
    name = function.__name__
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise UserError(
            f"the trial {name!r} is an async function, and nobody awaits it",
            hint="define it with 'def'; asyncio.run(...) in it runs what is async",
        )
    if inspect.isgeneratorfunction(function):
        raise UserError(
            f"the trial {name!r} is a generator",
            hint="return the result, and report values on the way by bq.report_intermediate",
        )
    parameters = inspect.signature(function).parameters.values()
    needed = [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if len(needed) > 1 or any(
        each.kind is each.KEYWORD_ONLY and each.name in needed for each in parameters
    ):
        raise UserError(
            f"the trial {name!r} takes {', '.join(needed)}, and gets one argument: its parameters",
            hint=f"def {name}(parameters): ... parameters[{needed[0]!r}] ...",
        )


@dataclass(frozen=True, slots=True)
class WrittenModule:
    """The text of a module, and the files of data that it reads, by their names."""

    text: str
    data: Mapping[str, bytes]


def module_source(thing: Definition, preamble: str = "") -> WrittenModule:
    """Return a module that defines ``thing`` and everything it uses.

    Args:
        thing: passed by :func:`check_stands_alone`.
        preamble: lines to run before all imports.

    Raises:
        UserError: its source is not to be had, or it uses a global that is neither a
            module, nor a function or class, nor data.
    """
    written = _Module()
    written.define(thing.__name__, thing, user=thing.__name__)
    return WrittenModule(written.text(preamble), written.values.files)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lines of the module, and the cell that they come from, if they do."""

    lines: list[str]
    place: str = ""
    first: int = 0
    depth: int = 0


class _Block:
    """Pieces that stand in one block: the module's top, or a function around others."""

    def __init__(self) -> None:
        self.pieces: list[_Piece] = []
        self.names: dict[str, object] = {}  #: what they stand for; in a function also cells

    def add(self, *lines: str) -> None:
        self.pieces.append(_Piece(list(lines)))

    def take(self, name: str, value: object, user: str) -> bool:
        """Take a name for a value; false if it stands for that already."""
        if name not in self.names:
            self.names[name] = value
            return True
        if self.names[name] is value:
            return False
        raise UserError(
            f"{user!r} and what it uses know two different things called {name!r}",
            hint="give one of them another name, or put them into a module",
        )

    def put(self, source: CellSource, own: str) -> None:
        """Add a definition under its own name; that of a lambda is given to it."""
        lines = list(source.lines)
        if source.is_lambda:
            lines[0] = f"{own} = {lines[0]}"
        else:
            self.add("", "")
        self.pieces.append(_Piece(lines, source.place, source.first))


class _Module:
    """A module that grows: what a definition needs is written before it."""

    def __init__(self) -> None:
        self.values = CellValues()
        self._imports: list[str] = []
        self._top = _Block()
        self._arounds = 0
        self._open: list[str] = []  # names of definitions that are being written
        self._late_annotations = False

    def text(self, preamble: str) -> str:
        """Return the whole module."""
        lines = ["# Written by bequeath from a notebook or script; edit it there."]
        if self._late_annotations:
            lines.append("from __future__ import annotations")
        pieces = self._top.pieces
        if any(f"{DATA_NAME}." in line for piece in pieces for line in piece.lines):
            origin = f"from {CellData.__module__} import {CellData.__name__}"
            lines += [f"{origin} as _BequeathData", ""]
            lines.append(f"{DATA_NAME} = _BequeathData(__file__)")
        lines += "\n".join([preamble, *self._imports]).split("\n")
        table = []
        for piece in pieces:
            first = len(lines) + 1
            lines += indented(piece.lines, "    " * piece.depth)
            if piece.place:
                table.append((first, len(lines), piece.place, piece.first - first))
        return "\n".join([*lines, "", f"{LINES} = {table!r}", ""])

    # -- the top of the module ----------------------------------------------------------------

    def define(self, name: str, thing: Definition, *, user: str) -> None:
        """Write a definition after all that it uses.

        Args:
            name: the global that it is.
            thing: the function or class.
            user: the name of the definition that uses it.
        """
        if not self._top.take(name, thing, user):
            return
        source = self._source(thing)
        own = source.name or name
        if source.around or self._top.names.get(own, thing) is not thing:
            self._close_around(name, thing, self._top)
            return
        if own == name or self._top.take(own, thing, user):
            self._provide_globals(source, own)
            self._top.put(source, own)
            self._keep_changes(unwrapped(thing), source, own)
        if own != name:
            self._top.add(f"{name} = {own}")

    def _keep_changes(self, thing: Definition, source: CellSource, own: str) -> None:
        """Write what was changed since the text of a definition ran, after it."""
        if isinstance(thing, FunctionType):
            if source.lines[0].startswith("@"):
                return  # the name stands for what a decorator has made of it
            self._keep_defaults(thing, source, own)
            return
        for name, value, new in list(changed_attributes(thing, source)):
            try:
                text = self._attribute(name, value, source, own)
            except UserError:
                if not new:
                    raise
                continue  # whether the function uses it is not known
            self._top.add(f"{own}.{name} = {text}")

    def _attribute(self, name: str, value: Any, source: CellSource, own: str) -> str:
        if not isinstance(value, FunctionType):
            return self._expression(name, value, source, f"{own!r} has as its attribute")
        self.define(f"{own}_{name}", value, user=own)
        return f"{own}_{name}"

    def _keep_defaults(self, function: FunctionType, source: CellSource, own: str) -> None:
        texts = changed_defaults(function, source)
        if not texts:
            return
        by_name = {
            name: one for name, one in (function.__kwdefaults__ or {}).items() if name in texts
        }
        positional = [name for name in texts if name not in by_name]
        values = {**by_name, **dict(zip(positional, function.__defaults__ or (), strict=False))}
        shown = {
            name: text
            or self._expression(name, values[name], source, f"{own!r} has as the default of")
            for name, text in texts.items()
        }
        if positional:
            members = "".join(f"{shown[name]}, " for name in positional)
            self._top.add(f"{own}.__defaults__ = ({members})")
        if by_name:
            members = ", ".join(f"{name!r}: {shown[name]}" for name in by_name)
            self._top.add(f"{own}.__kwdefaults__ = {{{members}}}")

    def _source(self, thing: Definition, *, bare: bool = False) -> CellSource:
        source = source_of(thing, bare=bare)
        self._late_annotations |= source.late_annotations
        return source

    def _provide_globals(self, source: CellSource, user: str) -> None:
        self._open.append(user)
        for name in source.uses:
            if name in source.around or name == user:
                continue
            if name in source.namespace:
                self._provide(name, source.namespace[name], source, user)
            elif source.is_inner and not source.late_annotations and not hasattr(builtins, name):
                raise UserError(
                    f"{user!r} uses {name!r} of the function around it where it is defined: in a "
                    "decorator, a default, an annotation or as a base class",
                    hint=f"use {name!r} only in the body, or define {user!r} at the top level",
                    where=source.where(name),
                )
        self._open.pop()

    def _provide(self, name: str, value: Any, source: CellSource, user: str) -> None:
        if getattr(builtins, name, None) is value:
            return
        inner = unwrapped(value)
        if isinstance(inner, FunctionType | type) and not _from_elsewhere(value, inner):
            self.define(name, value, user=user)
            return
        new = self._top.take(name, value, user)
        if isinstance(value, ModuleType):
            alias = "" if name == value.__name__ else f" as {name}"
            lines = [f"import {value.__name__}{alias}"]
            lines += [
                f"import {each} as {DATA_NAME}_imported" for each in source.parts_of(name, value)
            ]
            self._imports += [line for line in lines if line not in self._imports]
        elif not new:
            return
        elif (origin := origin_of(value)) is not None:
            alias = "" if name == origin[1] else f" as {name}"
            self._imports.append(f"from {origin[0]} import {origin[1]}{alias}")
        else:
            text = self._expression(name, value, source, f"{user!r} uses the global")
            self._top.add(f"{name} = {text}")

    def _expression(self, name: str, value: Any, source: CellSource, uses: str) -> str:
        """Return an expression for data; functions and classes in it are defined at the top."""

        def define(inner: Definition) -> str:
            if inner.__name__ in self._open:
                raise CannotTravel(
                    f"it holds {inner.__name__!r}, which uses it", "take that out of x"
                )
            self.define(inner.__name__, inner, user=name)
            return inner.__name__

        try:
            return self.values.expression(value, define)
        except CannotTravel as misfit:
            raise UserError(
                f"{uses} {name!r} ({type(value).__name__}), which another process cannot have: "
                f"{misfit.message}",
                hint=misfit.hint_for(name),
                where=source.where(name),
            ) from None

    # -- functions around others --------------------------------------------------------------

    def _close_around(self, name: str, thing: Definition, outside: _Block) -> None:
        """Write a definition with the variables around it in a function of its own, and call it."""
        self._arounds += 1
        maker = f"{DATA_NAME}_around_{self._arounds}"
        inside = _Block()
        own = self._place(name, thing, inside)
        inside.add(f"return {own}")
        outside.add("", "", f"def {maker}():")
        outside.pieces += [replace(each, depth=each.depth + 1) for each in inside.pieces]
        outside.add("", "", f"{name} = {maker}()")

    def _place(self, name: str, thing: Definition, block: _Block) -> str:
        """Write a definition into a block, after what it uses; return its own name there."""
        source = self._source(thing, bare=not hasattr(thing, "__wrapped__"))
        own = source.name or name
        block.names.setdefault(own, thing)
        for variable, cell in source.around.items():
            self._provide_variable(variable, cell, block, source, own)
        self._provide_globals(source, own)
        block.put(source, own)
        return own

    def _provide_variable(
        self, name: str, cell: CellType, block: _Block, source: CellSource, user: str
    ) -> None:
        value = contents_of(cell)
        if value is EMPTY:
            raise UserError(
                f"{user!r} uses the variable {name!r} of the function around it, which has no "
                "value",
                hint="give it one before the function around it returns",
                where=source.where(name),
            )
        if name in block.names and (block.names[name] is cell or block.names[name] is value):
            return
        block.names[name] = cell
        inner = unwrapped(value)
        if not isinstance(inner, FunctionType | type) or _from_elsewhere(value, inner):
            uses = f"{user!r} uses the variable around it"
            block.add(f"{name} = {self._expression(name, value, source, uses)}")
        elif self._fits(name, value, block):
            self._place(name, value, block)
        else:
            self._close_around(name, value, block)

    def _fits(self, name: str, value: Definition, block: _Block) -> bool:
        """Whether a function can share a block: no name stands for something else there."""
        source = source_of(value, bare=not hasattr(value, "__wrapped__"))
        if source.name not in ("", name):
            return False
        for each, cell in source.around.items():
            there = block.names.get(each, cell)
            if each != name and there is not cell and there is not contents_of(cell):
                return False
        return True


def _from_elsewhere(value: Any, inner: Definition) -> bool:
    """Whether another process imports it, or has it anyway."""
    if getattr(builtins, inner.__name__, None) is value:
        return True
    if isinstance(value, FunctionType | type):
        return is_importable(value)
    return origin_of(value) is not None
