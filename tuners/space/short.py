"""Short forms: a parameter as one text, such as ``loguniform(1e-4, 1e-1)``.

The text is parsed as an expression by Python's own parser and read node by node: calls of the
names in :data:`tuners.space.forms.FORMS`, numbers, texts, lists and mappings. Nothing is executed.
"""

from __future__ import annotations

import ast
import keyword
import re
from typing import Any

from tuners.plain_json import kind_of
from tuners.space.expressions import WORDS, expression
from tuners.space.forms import FORMS, Entry, entry, near
from tuners.space.model import BLOCKS, SpaceError

MOST_CHARACTERS = 10_000
"""Of one short form; more belongs into a list of the file."""

_CALL = re.compile(r"\s*([A-Za-z_][\w.]*)\s*\(")
_EXAMPLE = "write e.g. 'lr: loguniform(1e-4, 1e-1)'"

#: Words of Python that name a parameter or an option as well as any, such as ``lambda``.
_WORDS = "|".join(set(keyword.kwlist) - {"True", "False", "None"})
_RESERVED = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    rf"|(?<![\w.])(?P<word>{_WORDS})(?![\w.])"
)


def called(text: str) -> str:
    """The name that a text calls; empty if it is no call."""
    match = _CALL.match(text)
    return match.group(1) if match is not None else ""


def is_short(text: str) -> bool:
    """Whether a text calls one of our names, rightly or not."""
    return called(text) in FORMS


def read_short(text: str) -> Entry:
    """Reads a short form as NNI's JSON; whether its numbers make sense is not checked here.

    Raises:
        SpaceError: it is no call, or not one that can be read.
    """
    name = called(text)
    if name not in FORMS:
        raise _not_ours(text, name)
    quoted = _RESERVED.sub(lambda each: each["quoted"] or repr(each["word"]), text)
    try:
        return _read(quoted, name)
    except SyntaxError:
        pass  # whatever is wrong is named at its place in the text as it was written
    try:
        return _read(text, name)
    except SyntaxError as error:
        raise _unreadable(text, error) from None


def _read(text: str, name: str) -> Entry:
    with expression(text, MOST_CHARACTERS) as node:
        if not (isinstance(node, ast.Call) and _name_of(node.func) == name):
            hint = f"write e.g. {FORMS[name].example} alone"
            raise SpaceError((), "is more than one call", hint)
        return _call(node)


def _not_ours(text: str, name: str) -> SpaceError:
    if name:
        meant = near(name)
        hint = f"did you mean {meant}?" if meant else f"the names are {', '.join(FORMS)}"
        return SpaceError((), f"calls {name!r}, which is no kind of parameter", hint)
    word = text.strip()
    if word in FORMS:
        return SpaceError((), "lacks its arguments", f"write e.g. {FORMS[word].example}")
    return SpaceError((), "is a text and no parameter", _EXAMPLE)


def _unreadable(text: str, error: SyntaxError) -> SpaceError:
    opened, closed = text.count("("), text.count(")")
    if opened != closed:
        if closed > opened:
            return SpaceError((), "has a ')' too many")
        hint = "within {} and [] of YAML a comma ends a text: put it in quotes, 'uniform(0, 1)'"
        return SpaceError((), "is not closed: a ')' is missing", hint)
    return SpaceError(
        (), f"cannot be read at its character {error.offset or 1}: {error.msg}", _EXAMPLE
    )


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


def _call(node: ast.Call) -> Entry:
    name = _name_of(node.func)
    if name not in FORMS:
        raise _not_ours(f"{name}()", name)
    read = _below if name == BLOCKS else _literal
    named: dict[str, Any] = {}
    for each in node.keywords:
        if each.arg is None:
            raise SpaceError((), "cannot take '**'", f"write {FORMS[name].signature}")
        named[each.arg] = read(each.value)
    alone = len(node.args) == 1 and name == "choice"
    given = [_options(node.args[0])] if alone else [read(each) for each in node.args]
    return entry(name, given, named)


def _options(node: ast.expr) -> Any:
    """The only argument of a choice, below which parameters may stand: those of its branches."""
    if isinstance(node, ast.Dict):
        named = {key: _branch(value) for key, value in _items(node)}
        return named if "_name" not in named else _branch(node)
    if isinstance(node, ast.List | ast.Tuple):
        return [_option(each) for each in node.elts]
    return _literal(node)


def _option(node: ast.expr) -> Any:
    is_branch = isinstance(node, ast.Dict) and any(key == "_name" for key, _ in _items(node))
    return _branch(node) if is_branch else _literal(node)


def _branch(node: ast.expr) -> Any:
    if not isinstance(node, ast.Dict):
        return _literal(node)
    return {key: _parameter(value) for key, value in _items(node)}


def _parameter(node: ast.expr) -> Any:
    return _call(node) if isinstance(node, ast.Call) else _literal(node)


def _below(node: ast.expr) -> Any:
    """An argument of a list of blocks, of which one is a parameter, or several by their names."""
    return _branch(node) if isinstance(node, ast.Dict) else _parameter(node)


def _items(node: ast.Dict) -> list[tuple[str, ast.expr]]:
    items = []
    for key, value in zip(node.keys, node.values, strict=True):
        name = None if key is None else _literal(key)
        if not isinstance(name, str):
            shown = "'**'" if key is None else kind_of(name)
            raise SpaceError((), f"has a mapping whose key is {shown}, and names are texts")
        items.append((name, value))
    return items


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name):
            return WORDS.get(name, name)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant(value=value)) if (
            isinstance(value, int | float) and not isinstance(value, bool)
        ):
            return -value if isinstance(sign, ast.USub) else value
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_literal(each) for each in parts]
        case ast.Dict():
            return {key: _literal(value) for key, value in _items(node)}
        case ast.Call():
            raise SpaceError(
                (),
                f"has {ast.unparse(node)!r} where a plain value stands",
                "parameters stand below the name of an option: "
                "choice({'sgd': {'momentum': uniform(0, 1)}, 'adam': {}})",
            )
        case ast.Starred():
            raise SpaceError((), "cannot take '*'", "list the values")
        case _:
            raise SpaceError(
                (),
                f"has {ast.unparse(node)!r} where a number or a text stands",
                "write the value itself: nothing is computed",
            )
