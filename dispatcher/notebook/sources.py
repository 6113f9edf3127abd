"""Sources of functions and classes of a notebook or script: found by the lines of their cells.

The text of a cell is kept by Python (``linecache``), that of a script is its file. Nothing is run.
"""

from __future__ import annotations
import __future__

import ast
import functools
import linecache
import symtable
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from dispatcher.errors import UserError

Definition = FunctionType | type

#: Stands for no value.
EMPTY = object()

#: Files of functions that a decorator has made of text, such as the ``__init__`` of a dataclass: it
#: makes them again.
_GENERATED = ("<string>", "<attrs generated")

#: Decorators of one function.
_MOST_WRAPPERS = 100

#: The flag of code that was compiled with ``from __future__ import annotations``.
_LATE = __future__.annotations.compiler_flag


@dataclass(frozen=True, slots=True)
class CellSource:
    """The source of a definition.

    Attributes:
        lines: its text, without the indentation that it has there.
        place: the cell, or the script, as people know it.
        first: the number of its first line there, from 1.
        uses: names that it looks up outside of itself, with the number of a line there.
        namespace: the globals that it sees.
        around: variables of functions around it that it uses, by name.
        name: by which its text binds it; empty for a lambda.
        is_inner: whether it is defined in another function.
        late_annotations: whether its annotations are never evaluated.
    """

    lines: tuple[str, ...]
    place: str
    first: int
    uses: Mapping[str, int]
    namespace: Mapping[str, Any]
    around: Mapping[str, CellType]
    name: str
    is_inner: bool
    late_annotations: bool

    @property
    def is_lambda(self) -> bool:
        """Whether its text is an expression."""
        return not self.name

    def parts_of(self, name: str, module: ModuleType) -> list[str]:
        """Return the modules below one that it reaches by the name of that, such as
        ``scipy.optimize``: an import of ``scipy`` alone may not load it."""
        parts = set()
        for node in ast.walk(ast.parse("\n".join(self.lines))):
            chain: list[str] = []
            while isinstance(node, ast.Attribute):
                chain.insert(0, node.attr)
                node = node.value
            full = module.__name__
            if isinstance(node, ast.Name) and node.id == name:
                for each in chain:
                    full += f".{each}"
                    if full not in sys.modules:
                        break
                    parts.add(full)
        return sorted(parts)

    def where(self, name: str) -> str:
        """Return the place at which it uses a name."""
        return place_of(self.place, self.uses.get(name, self.first))


def place_of(place: str, line: int) -> str:
    """Return a line of a cell or of a script as errors name it."""
    return f"{place}, line {line}" if place.startswith("Cell") else f"{place}:{line}"


def source_of(thing: Definition, *, bare: bool = False) -> CellSource:
    """Find the source of a function or a class.

    Args:
        thing: the definition.
        bare: without its decorators: it is what one of these has wrapped.

    Raises:
        UserError: it is not to be had.
    """
    thing = unwrapped(thing)
    for lines, filename, namespace, code in _texts_for(thing):
        tree = _parsed("".join(lines))
        node = None if tree is None else _node(tree, thing.__name__, code)
        if node is not None:
            first, text = _text(lines, node, bare=bare)
            around = _around(thing)
            uses = _used_lines(node, text, around)
            place = _place(filename, lines, namespace)
            return CellSource(
                tuple(text),
                place,
                first,
                uses,
                namespace,
                around,
                "" if isinstance(node, ast.Lambda) else node.name,
                "<locals>" in thing.__qualname__,
                _is_late(thing, code),
            )
    name = "a lambda" if thing.__name__ == "<lambda>" else repr(thing.__name__)
    raise UserError(
        f"the source of {name} is not to be had",
        hint="run its cell (or script) again if it was edited since; definitions typed at a "
        "prompt or made by exec are not kept",
    )


def _is_late(thing: Definition, code: CodeType | None) -> bool:
    hints = vars(thing).get("__annotations__", {}).values() if isinstance(thing, type) else ()
    return any(isinstance(each, str) for each in hints) or bool(code and code.co_flags & _LATE)


def attribute_of(value: Any, name: str) -> Any:
    """Return an attribute of whatever a notebook holds; None if it has none, or if its own code
    raises instead of saying so, as objects do that stand for others."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - code of the object
        return None


def unwrapped(thing: Any) -> Any:
    """Return what decorators have wrapped and say so, as ``functools.wraps`` has them do. Objects
    that have attributes of any name, without an end, have wrapped nothing."""
    inner = thing
    for _ in range(_MOST_WRAPPERS):
        if isinstance(inner, type) or (wrapped := attribute_of(inner, "__wrapped__")) is None:
            return inner
        inner = wrapped
    return thing


def functions_of(thing: Definition) -> Iterator[FunctionType]:
    """Yield the function, or those that a class defines."""
    if isinstance(thing, FunctionType):
        yield thing
        return
    for each in vars(thing).values():
        inner: Any = unwrapped(getattr(each, "__func__", each))
        inner = getattr(inner, "fget", inner)
        if not isinstance(inner, FunctionType) or inner.__module__ != thing.__module__:
            continue
        if not inner.__code__.co_filename.startswith(_GENERATED):
            yield inner


def contents_of(cell: CellType) -> Any:
    """Return the value of a variable around a function; :data:`EMPTY` if it has none."""
    try:
        return cell.cell_contents
    except ValueError:
        return EMPTY


def _around(thing: Definition) -> dict[str, CellType]:
    return {
        name: cell
        for each in functions_of(thing)
        for name, cell in zip(each.__code__.co_freevars, each.__closure__ or (), strict=True)
        if name != "__class__"
    }


# -- the text ------------------------------------------------------------------------------------

_Text = tuple[list[str], str, Mapping[str, Any], CodeType | None]


def _texts_for(thing: Definition) -> Iterator[_Text]:
    """Yield texts that may define it: lines, file, globals, and the code that is looked for."""
    for each in functions_of(thing):
        filename = each.__code__.co_filename
        names, code = each.__globals__, each.__code__
        yield linecache.getlines(filename, names), filename, names, code
        yield from _inputs_with(code, names)
    if isinstance(thing, type):  # such as a dataclass: none of its functions has a line
        namespace = vars(sys.modules[thing.__module__]) if thing.__module__ in sys.modules else {}
        file = namespace.get("__file__")
        if isinstance(file, str):
            yield linecache.getlines(file), file, namespace, None
        for number, text in reversed(list(enumerate(_inputs(namespace)))):
            yield _lines_of(*_below_magic(text)), f"Cell [{number}]", namespace, None


def _inputs(namespace: Mapping[str, Any]) -> list[str]:
    """Return the texts of cells as IPython keeps them: each at its number."""
    texts = namespace.get("In")
    return [one if isinstance(one, str) else "" for one in texts] if isinstance(texts, list) else []


def _inputs_with(code: CodeType, namespace: Mapping[str, Any]) -> Iterator[_Text]:
    """Yield the text of the cell that this code was made of. IPython keeps no lines of one that
    runs by a magic such as ``%%time``, and counts some as Python does not."""
    for number, text in reversed(list(enumerate(_inputs(namespace)))):
        above, body = _below_magic(text)
        if _compiles_to(code, body):
            moved = code.replace(co_firstlineno=code.co_firstlineno + above)
            yield _lines_of(above, body), f"Cell [{number}]", namespace, moved
            return


def _below_magic(text: str) -> tuple[int, str]:
    """Return how many lines of a cell are above its code, and that. For IPython a cell that begins
    with a magic is a call, which has the rest of its text."""
    tree = _parsed(text) if text.startswith("get_ipython().run_cell_magic(") else None
    for call in ast.walk(tree) if tree is not None else ():
        if isinstance(call, ast.Call) and len(call.args) == 3:
            rest = call.args[2]
            if isinstance(rest, ast.Constant) and isinstance(rest.value, str):
                body = rest.value.lstrip("\n")
                return 1 + len(rest.value) - len(body), body
    return 0, text


def _lines_of(above: int, text: str) -> list[str]:
    return ["\n"] * above + [f"{line}\n" for line in text.split("\n")]


def _compiles_to(code: CodeType, text: str) -> bool:
    try:
        flags = code.co_flags & _LATE
        waiting = [compile(text, code.co_filename, "exec", flags=flags, dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError):
        return False
    for each in waiting:
        if each == code:
            return True
        waiting.extend(one for one in each.co_consts if isinstance(one, CodeType))
    return False


def _place(filename: str, lines: list[str], namespace: Mapping[str, Any]) -> str:
    if filename.startswith("Cell ["):
        return filename
    text = "".join(lines).strip()
    for number, one in reversed(list(enumerate(_inputs(namespace)))):
        if one.strip() == text:
            return f"Cell [{number}]"
    return filename if Path(filename).is_file() else "Cell"


@functools.lru_cache(maxsize=32)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


_Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def _node(tree: ast.Module, name: str, code: CodeType | None) -> _Node | None:
    """Find the definition to which the code belongs; of a class without any, by its name."""
    fitting: list[_Node] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and name == "<lambda>" and code is not None:
            if node.lineno == code.co_firstlineno:
                fitting.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            if code is not None and _first_line(node) == code.co_firstlineno:
                fitting.append(node)
        elif isinstance(node, ast.ClassDef) and node.name == name:
            last = node.end_lineno or node.lineno
            if code is None or _first_line(node) <= code.co_firstlineno <= last:
                fitting.append(node)
    if code is not None and name == "<lambda>" and len(fitting) > 1:
        spans = set(code.co_positions())
        fitting = [each for each in fitting if _span(each) in spans]
    return fitting[-1] if fitting else None  # of classes in one another the inner one


def _span(node: _Node) -> tuple[int | None, int | None, int | None, int | None]:
    """Return where the value of a lambda stands, as code objects have it."""
    body = node.body if isinstance(node, ast.Lambda) else node
    return body.lineno, body.end_lineno, body.col_offset, body.end_col_offset


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _text(lines: list[str], node: _Node, *, bare: bool) -> tuple[int, list[str]]:
    """Return the number of its first line and its lines, at the left margin."""
    last = node.end_lineno or node.lineno
    if isinstance(node, ast.Lambda):
        segment = ast.get_source_segment("".join(lines), node) or ""
        return node.lineno, f"({segment})".split("\n")
    first = node.lineno if bare else _first_line(node)
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    fixed = _lines_in_texts(node)
    shown = [
        line.rstrip("\n") if number in fixed else line.rstrip("\n")[indent:]
        for number, line in enumerate(lines[first - 1 : last], first)
    ]
    return first, shown


def _lines_in_texts(node: ast.AST) -> set[int]:
    """Return the numbers of lines that begin within a text: their blanks belong to it."""
    return {
        number
        for each in ast.walk(node)
        if isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str | bytes))
        for number in range(each.lineno + 1, (each.end_lineno or each.lineno) + 1)
    }


def indented(lines: tuple[str, ...] | list[str], by: str) -> list[str]:
    """Return lines of a module one level deeper; texts in them stay as they are."""
    tree = _parsed("\n".join(lines))
    fixed = set() if tree is None else _lines_in_texts(tree)
    return [
        line if number in fixed or not line else f"{by}{line}"
        for number, line in enumerate(lines, 1)
    ]


def _used_lines(node: _Node, lines: list[str], around: Mapping[str, CellType]) -> dict[str, int]:
    """Return the names that a definition looks up outside of itself, each with a line there."""
    numbers: dict[str, int] = {}
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            numbers[each.id] = min(each.lineno, numbers.get(each.id, each.lineno))
    if around:  # or `nonlocal` would be none
        lines = ["def around():", f"    {' = '.join(around)} = None", *indented(lines, "    ")]
    names = {*_globals_used("\n".join(lines)), *around}
    return {name: numbers.get(name, node.lineno) for name in sorted(names)}


def _globals_used(source: str) -> set[str]:
    """Names that a definition looks up in its module, wherever in it."""
    names: set[str] = set()
    changed = {  # by `n += 1`, which reads the name, too: the table of symbols does not say so
        each.target.id
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)
    }
    tables = [symtable.symtable(source, "definition", "exec")]
    while tables:
        table = tables.pop()
        tables.extend(table.get_children())
        for symbol in table.get_symbols():
            top = table.get_type() == "module"
            outside = not symbol.is_assigned() if top else symbol.is_global()
            name = symbol.get_name()
            if outside and (symbol.is_referenced() or name in changed):
                names.add(name)
    return names
