"""Finds out in which form an advisor expects the value of a metric.

Up to v1.4 of NNI an advisor got the value itself, from v1.5 on its JSON text, which it decodes. A
file does not name its release, so its code is read: an advisor that decodes a value gets text.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator

_DECODERS = frozenset({"loads", "load"})


def decodes_values(owner: type) -> bool:
    """Whether a class, or one that it derives from beside NNI's own, decodes values."""
    return any(_decodes(tree) for tree in _sources(owner))


def _sources(owner: type) -> Iterator[ast.Module]:
    for cls in owner.__mro__:
        top = cls.__module__.partition(".")[0]
        if top in ("nni", "builtins") or cls.__module__ not in sys.modules:
            continue
        try:
            yield ast.parse(inspect.getsource(sys.modules[cls.__module__]))
        except (OSError, TypeError, SyntaxError):
            continue  # without a source; taken for one of the old kind


def _decodes(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Call) and _name(node.func) in _DECODERS and _is_of_a_value(node)
        for node in ast.walk(tree)
    )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_of_a_value(call: ast.Call) -> bool:
    """``loads(data["value"])``, ``loads(data.get("value"))``, ``loads(value)``."""
    inside = [node for argument in call.args for node in ast.walk(argument)]
    return any(
        (isinstance(node, ast.Constant) and node.value == "value")
        or (isinstance(node, ast.Name) and node.id == "value")
        for node in inside
    )
