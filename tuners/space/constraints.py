"""Conditions between the parameters of a search space, such as ``layers * width <= 4096``.

A condition is parsed by Python's own parser and computed node by node, on numbers, texts and
truth values only. Nothing is executed, and what one condition can compute is bounded.
"""

from __future__ import annotations

import ast
import difflib
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tuners.plain_json import JsonPath, kind_of
from tuners.space.expressions import WORDS, expression
from tuners.space.model import Branch, Choice, Dimension, SpaceError

MOST_CHARACTERS: Final = 1_000
"""Of one condition."""

_EXAMPLE = "write e.g. 'layers * width <= 4096'"
_ONE_EQUAL = re.compile(r"(?<![=<>!])=(?!=)")
_DEEPEST = 40
_MOST_BITS = 4096  # of a power: more is no number that anybody compares

_ARITHMETIC: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: Final[Mapping[type, Callable[[Any, Any], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda one, among: one in among,
    ast.NotIn: lambda one, among: one not in among,
}
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": abs,
    "len": len,
    "max": max,
    "min": min,
}

_Named = tuple[tuple[str, Dimension], ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    """One condition. ``paths``: the parameters that it names, such as ``("optimizer", "lr")``."""

    text: str
    paths: tuple[tuple[str, ...], ...] = field(compare=False)
    _node: ast.expr = field(compare=False, repr=False)

    @classmethod
    def of(cls, text: str) -> Constraint:
        """Reads a condition.

        Raises:
            SpaceError: it cannot be read, or is no condition.
        """
        paths: dict[tuple[str, ...], None] = {}
        try:
            with expression(text, MOST_CHARACTERS) as node:
                _check(node, paths, _DEEPEST)
        except SyntaxError as error:
            hint = "write '==' to compare" if _ONE_EQUAL.search(text) else _EXAMPLE
            where = f"at its character {error.offset or 1}"
            raise SpaceError((), f"cannot be read {where}: {error.msg}", hint) from None
        if not _is_condition(node):
            raise SpaceError((), "compares nothing", _EXAMPLE)
        if not paths:
            raise SpaceError((), "names no parameter", _EXAMPLE)
        return cls(text, tuple(paths), node)

    def holds(self, parameters: Mapping[str, Any]) -> bool:
        """Whether parameters meet it.

        A condition about a parameter below an option that was not chosen holds; one that cannot be
        computed, as it divides by zero or compares a text with a number, does not.
        """
        try:
            return bool(_value(self._node, parameters))
        except LookupError:  # a parameter below an option that was not chosen
            return True
        except (TypeError, ArithmeticError, ValueError):
            return False


def constraints_of(
    written: object, dimensions: _Named, path: JsonPath, refuse: Callable[..., None]
) -> tuple[Constraint, ...]:
    """Reads the conditions of a space; none where one of them is wrong.

    Args:
        written: the list of them.
        dimensions: the parameters that they may name.
        path: where the list stands.
        refuse: takes each mistake: its path, the message, a hint.
    """
    if len(path) > 1:
        refuse(path, "stands below an option or in a block, and belongs to the whole search space")
        return ()
    if not isinstance(written, list | tuple):
        hint = "write e.g. '_constraints: [\"layers * width <= 4096\"]'"
        refuse(path, f"must be a list of conditions, not {kind_of(written)}", hint)
        return ()
    constraints = []
    for index, text in enumerate(written):
        at = (*path, index)
        if not isinstance(text, str):
            refuse(at, f"must be a condition as text, not {kind_of(text)}")
            continue
        try:
            constraint = Constraint.of(text)
        except SpaceError as error:
            refuse(at, f"is {text[:80]!r}, which {error.message}", error.hint)
            continue
        unknown = [_unknown(named, dimensions) for named in constraint.paths]
        for message, hint in filter(None, unknown):
            refuse(at, message, hint)
        if not any(unknown):
            constraints.append(constraint)
    return tuple(constraints) if len(constraints) == len(written) else ()


def _unknown(named: tuple[str, ...], dimensions: _Named) -> tuple[str, str] | None:
    """The mistake, as message and hint, of a condition that names what no trial can have."""
    there = list(dimensions)
    for depth, name in enumerate(named):
        below = [dimension for known, dimension in there if known == name]
        if not below:
            names = list(dict.fromkeys(each for each, _ in there))
            near, known = (
                difflib.get_close_matches(name, names, 1),
                ".".join(named[: depth + 1]),
            )
            guess = f"; did you mean {near[0]!r}?" if near else ""
            hint = f"there are {', '.join(names)}" if names else ""
            return f"names {known!r}, which is no parameter{guess}", hint
        there = [
            pair
            for dimension in below
            if isinstance(dimension, Choice)
            for option in dimension.options
            if isinstance(option, Branch)
            for pair in option.space.dimensions
        ]
    return None


def _is_condition(node: ast.expr) -> bool:
    match node:
        case ast.BoolOp(values=parts):
            return all(map(_is_condition, parts))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_condition(operand) or isinstance(operand, ast.Name | ast.Attribute)
        case ast.Compare() | ast.Name() | ast.Attribute():
            return True
        case _:
            return False


def _check(node: ast.expr, paths: dict[tuple[str, ...], None], depth: int) -> None:
    """Refuses what conditions do not have, and collects the parameters that are named."""
    if depth == 0:
        raise SpaceError((), f"is nested more than {_DEEPEST} deep", "write several conditions")
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str()):
            inner: list[ast.expr] = []
        case ast.Name() | ast.Attribute() | ast.Subscript():
            path = _path(node)
            if path != () and not (len(path) == 1 and path[0] in WORDS):
                paths[path] = None
            inner = []
        case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            inner = list(parts)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.UAdd(), operand=operand):
            inner = [operand]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            inner = [left, right]
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            type(op) in _COMPARISONS for op in ops
        ):
            inner = [left, *others]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            inner = list(arguments)
        case _:
            raise SpaceError(
                (),
                f"has {ast.unparse(node)!r}, which conditions do not have",
                "there are + - * / // % **, comparisons, in, and, or, not, len, abs, min and max",
            )
    for each in inner:
        _check(each, paths, depth - 1)


def _path(node: ast.expr) -> tuple[str, ...]:
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=below, attr=name):
            return (*_path(below), name)
        case ast.Subscript(value=below, slice=ast.Constant(value=str() as name)):
            return (*_path(below), name)
        case _:
            raise SpaceError(
                (),
                f"has {ast.unparse(node)!r}, which is no name of a parameter",
                "write name, or option.name below a nested choice",
            )


def _value(node: ast.expr, parameters: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return _looked_up(_path(node), parameters)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_value(each, parameters) for each in parts]
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(each, parameters) for each in parts)
        case ast.BoolOp(values=parts):
            return any(_value(each, parameters) for each in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, parameters)
        case ast.UnaryOp(op=op, operand=operand):
            number = _number(_value(operand, parameters))
            return -number if isinstance(op, ast.USub) else number
        case ast.BinOp(left=left, op=op, right=right):
            one, other = (_number(_value(each, parameters)) for each in (left, right))
            return _computed(op, one, other)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _FUNCTIONS[name](*(_value(each, parameters) for each in arguments))
        case ast.Compare(left=left, ops=ops, comparators=others):
            values = [_value(each, parameters) for each in (left, *others)]
            return all(
                _COMPARISONS[type(op)](one, other)
                for op, one, other in zip(ops, values, values[1:], strict=False)
            )
        case _:
            raise TypeError(ast.unparse(node))


def _looked_up(path: tuple[str, ...], parameters: Mapping[str, Any]) -> Any:
    if path[0] in WORDS and path[0] not in parameters:
        return WORDS[path[0]]
    value: Any = parameters
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            raise LookupError(name)
        value = value[name]
    return _compared(value)


def _compared(value: Any) -> Any:
    """A nested choice as the name of its option, also among blocks; any other value as it is."""
    if isinstance(value, list):
        return [_compared(each) for each in value]
    return value["_name"] if isinstance(value, Mapping) and "_name" in value else value


def _number(value: Any) -> Any:
    if isinstance(value, int | float):
        return value
    raise TypeError(f"no number: {value!r}")


def _computed(op: ast.operator, one: Any, other: Any) -> Any:
    whole = isinstance(one, int) and isinstance(other, int)
    if isinstance(op, ast.Pow) and whole and one.bit_length() * abs(other) > _MOST_BITS:
        raise OverflowError
    return _ARITHMETIC[type(op)](one, other)
