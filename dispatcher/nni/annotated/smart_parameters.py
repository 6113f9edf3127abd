"""Calls of ``nni.choice(…)`` and its like: each gets a key, and the keys are the search space.

The key is ``<module>/<name>/<function>``, where the name is that of the variable, or the line. An
option of a choice stands in the search space as itself if it is a number or a text, else as the
text of its expression; the trial is given that word, and the rewritten call turns it back.
"""

from __future__ import annotations

import ast
from typing import Any

from dispatcher.nni.annotated.edits import Edit, Unreadable, edited, padded, parsed

_NUMBERS = {
    "randint": (1, 2),
    "uniform": (2, 2),
    "quniform": (3, 3),
    "loguniform": (2, 2),
    "qloguniform": (3, 3),
    "normal": (2, 2),
    "qnormal": (3, 3),
    "lognormal": (2, 2),
    "qlognormal": (3, 3),
}
"""Functions of numbers, and how many they take."""

_CHOICES = ("choice", "function_choice")


def keyed(module: str, source: str) -> tuple[dict[str, Any], str]:
    """Return the search space of a module's code, and the code with a key in each call.

    Raises:
        Unreadable: a call that cannot be honoured, or no Python.
    """
    tree = parsed(source)
    transformer = _Keys(module)
    edits = []
    for call in _outermost(tree):
        new = transformer.visit(call)
        edits.append(Edit(call, padded(call, ast.unparse(new))))
    return transformer.space, edited(source, edits)


def _outermost(node: ast.AST) -> list[ast.Call]:
    if isinstance(node, ast.Call) and _function(node):
        return [node]
    return [call for child in ast.iter_child_nodes(node) for call in _outermost(child)]


def _function(call: ast.Call) -> str:
    """The name of a smart parameter's function; empty for any other call."""
    func = call.func
    if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)):
        return ""
    if func.value.id != "nni":
        return ""
    known = func.attr in _NUMBERS or func.attr in _CHOICES or func.attr == "mutable_layer"
    return func.attr if known else ""


class _Keys(ast.NodeTransformer):
    def __init__(self, module: str) -> None:
        self.module = module
        self.space: dict[str, Any] = {}

    def visit_Call(self, node: ast.Call) -> ast.Call:
        line = node.lineno
        self.generic_visit(node)
        function = _function(node)
        if function == "mutable_layer":
            return self._layer(node, line)
        if not function:
            return node
        name, is_named = _name(node, line)
        key = f"{self.module}/{name}/{function}"
        if function in _CHOICES:
            values, argument = _options(node, line, called=function == "function_choice")
            arguments: list[ast.expr] = [argument]
            entry: dict[str, Any] = {"_type": "choice", "_value": values}
        else:
            entry = {"_type": function, "_value": _numbers(node, function, line)}
            arguments = node.args
        before = self.space.get(key)
        if before is not None and before != entry:
            raise Unreadable(line, f"another parameter of this module is called {name!r} as well")
        if before is not None and not is_named:
            raise Unreadable(line, "two parameters without a name stand in one line")
        self.space[key] = entry
        keywords = [ast.keyword("key", ast.Constant(key))]
        if is_named:
            keywords.insert(0, ast.keyword("name", ast.Constant(name)))
        return ast.copy_location(ast.Call(node.func, arguments, keywords), node)

    def _layer(self, node: ast.Call, line: int) -> ast.Call:
        if len(node.args) < 7:
            raise Unreadable(line, "nni.mutable_layer is what @nni.mutable_layers becomes")
        block, layer, functions, _, _, optional, size = node.args[:7]
        try:
            settings = {
                "layer_choice": _keys_of(functions),
                "optional_inputs": _keys_of(optional),
                "optional_input_size": ast.literal_eval(size),
            }
            names = ast.literal_eval(block), ast.literal_eval(layer)
        except (ValueError, TypeError) as error:
            text = "names, options and sizes of a mutable layer must be written out"
            raise Unreadable(line, text) from error
        key = f"{self.module}/{names[0]}"
        entry = self.space.setdefault(key, {"_type": "mutable_layer", "_value": {}})
        entry["_value"][names[1]] = settings
        node.args[0] = ast.Constant(key)
        return node


def _keys_of(node: ast.expr) -> list[Any]:
    if not isinstance(node, ast.Dict):
        raise ValueError("no dict")
    return [ast.literal_eval(key) for key in node.keys if key is not None]


def _name(node: ast.Call, line: int) -> tuple[str, bool]:
    if not node.keywords:
        return f"__line{line}", False
    word = node.keywords[0]
    if len(node.keywords) > 1 or word.arg != "name" or not isinstance(word.value, ast.Constant):
        raise Unreadable(line, "a parameter takes one keyword, 'name', with a text")
    return str(word.value.value), True


def _options(node: ast.Call, line: int, *, called: bool) -> tuple[list[Any], ast.expr]:
    """The options of a choice as values, and a dict from these to what they stand for."""
    if len(node.args) == 1 and isinstance(node.args[0], ast.Dict):
        written = node.args[0]  # as NNI's own translator writes it
        try:
            return _keys_of(written), written
        except ValueError as error:
            raise Unreadable(line, "options must be numbers or texts") from error
    if any(isinstance(option, ast.Starred) for option in node.args):
        raise Unreadable(line, "options must be written out, without a star")
    values = [_value(option) for option in node.args]
    if not values or len(set(map(repr, values))) < len(values):
        raise Unreadable(line, "a choice has options, each of them once")
    keys: list[ast.expr | None] = [ast.Constant(value) for value in values]
    empty = ast.arguments([], [], None, [], [], None, [])
    stands: list[ast.expr] = [ast.Lambda(empty, each) if called else each for each in node.args]
    return values, ast.Dict(keys, stands)


def _value(option: ast.expr) -> Any:
    if isinstance(option, ast.Constant) and type(option.value) in (int, float, str):
        return option.value
    return ast.unparse(option)


def _numbers(node: ast.Call, function: str, line: int) -> list[Any]:
    least, most = _NUMBERS[function]
    try:
        values = [ast.literal_eval(each) for each in node.args]
    except (ValueError, TypeError) as error:
        raise Unreadable(line, f"nni.{function} takes numbers that are written out") from error
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        raise Unreadable(line, f"nni.{function} takes numbers")
    if not least <= len(values) <= most:
        raise Unreadable(line, f"nni.{function} takes {most} numbers, not {len(values)}")
    return values
