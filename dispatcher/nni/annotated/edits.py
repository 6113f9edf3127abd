"""Edits of Python source by the places that :mod:`ast` names, which keep every line in place."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple


class Unreadable(Exception):
    """Raised for annotated code that cannot be honoured, with its line."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


class Edit(NamedTuple):
    """The replacement of an expression: an expression, or a statement of one line."""

    node: ast.expr | ast.stmt
    text: str


def padded(node: ast.AST, text: str) -> str:
    """Return an expression as text that takes as many lines as the node it replaces."""
    lines = (getattr(node, "end_lineno", 0) or 0) - getattr(node, "lineno", 0)
    return f"({text}{chr(10) * lines})" if lines else text


def edited(source: str, edits: Iterable[Edit]) -> str:
    """Return the source with nodes replaced; no two of them overlap."""
    text = source.encode()
    starts = [0]
    for line in text.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    places = []
    for node, new in edits:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        places.append((begin, end, new.encode()))
    for begin, end, new_bytes in sorted(places, reverse=True):
        text = text[:begin] + new_bytes + text[end:]
    return text.decode()


def parsed(source: str) -> ast.Module:
    """Return the source as a tree.

    Raises:
        Unreadable: it is no Python of ours.
    """
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        raise Unreadable(line, f"is no Python that can be read here: {error}") from error


def importing_nni(source: str) -> str:
    """Return the source with ``import nni`` before everything that may need it."""
    tree = parsed(source)
    last: ast.stmt | None = None
    for place, node in enumerate(tree.body):
        is_text = place == 0 and isinstance(node, ast.Expr) and _is_text(node.value)
        if is_text or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            last = node
        else:
            break
    if last is not None:
        segment = ast.get_source_segment(source, last)
        return edited(source, [Edit(last, f"{segment}; import nni")])
    if not tree.body:
        return source
    first = tree.body[0]
    if isinstance(first, _SIMPLE):
        segment = ast.get_source_segment(source, first)
        return edited(source, [Edit(first, f"import nni; {segment}")])
    line = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
    lines = source.split("\n")
    above = lines[line - 2].strip() if line >= 2 else "code"
    if line > 3 and (not above or above.startswith("#")):
        lines[line - 2] = "import nni"  # in a line that says nothing; the first two may
    else:
        lines.insert(line - 1, "import nni")
    return "\n".join(lines)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


_SIMPLE = (
    ast.Expr,
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.Import,
    ast.ImportFrom,
    ast.Assert,
    ast.Delete,
    ast.Pass,
    ast.Raise,
    ast.Global,
)
