"""Strings that begin with ``@nni.`` become the code that they stand for.

=====================================  =============================================================
``@nni.variable(nni.choice(…), name)`` the next statement, ``name = …``, is given a drawn value
``@nni.function_choice(f(…), …)``      equal calls in the next statement become the chosen one
``@nni.report_intermediate_result(…)`` and ``report_final_result``, ``get_next_parameter``: the same
``@nni.mutable_layers({…}, …)``        an assignment for each layer
``@nni.training_update(…)``            a call that does nothing in classic NAS
=====================================  =============================================================
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dispatcher.nni.annotated.edits import (
    Edit,
    Unreadable,
    edited,
    importing_nni,
    padded,
    parsed,
)

MARK = "@nni."

SAID_AS_IT_IS = ("report_intermediate_result", "report_final_result", "get_next_parameter")
OF_THE_NEXT = ("variable", "function_choice")

_LAYER_KEYS = (
    "layer_choice",
    "fixed_inputs",
    "optional_inputs",
    "optional_input_size",
    "layer_output",
)


def expanded(source: str) -> str:
    """Return the source with its annotations turned into code; unchanged if it has none.

    Raises:
        Unreadable: an annotation that cannot be honoured, or no Python.
    """
    tree = parsed(source)
    edits = [edit for body in _bodies(tree) for edit in _of_body(body)]
    return importing_nni(edited(source, edits)) if edits else source


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def _of_body(body: list[ast.stmt]) -> Iterator[Edit]:
    waiting: tuple[int, str, ast.Call] | None = None
    for node in body:
        call = _annotation(node)
        if waiting is not None:
            line, name, annotation = waiting
            if call is not None:
                raise Unreadable(line, f"@nni.{name} annotates another annotation")
            yield from (_variable if name == "variable" else _function_choice)(
                annotation, node, line
            )
            waiting = None
        elif call is not None:
            name = _name_of(call)
            if name in OF_THE_NEXT:
                waiting = (node.lineno, name, call)
            elif name == "mutable_layers":
                yield Edit(node, _mutable_layers(call, node))
            elif name == "training_update":
                call.args.insert(0, ast.Constant("classic_mode"))
                yield Edit(node, padded(node, ast.unparse(call)))
            elif name in SAID_AS_IT_IS:
                yield Edit(node, padded(node, ast.unparse(call)))
            else:
                raise Unreadable(node.lineno, f"@nni.{name} is no annotation of NNI's")
    if waiting is not None:
        raise Unreadable(waiting[0], f"@nni.{waiting[1]} annotates nothing: no statement follows")


def _annotation(node: ast.stmt) -> ast.Call | None:
    """The call in an annotation; None for any other statement."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return None
    text = node.value.value
    if not isinstance(text, str) or not text.startswith(MARK):
        return None
    try:
        call = ast.parse(text[1:].strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise Unreadable(node.lineno, f"an annotation cannot be read: {error}") from error
    if not (isinstance(call, ast.Call) and _is_nnis(call.func)):
        raise Unreadable(node.lineno, "an annotation is one call, as in @nni.variable(…)")
    return call


def _is_nnis(func: ast.expr) -> bool:
    return (
        isinstance(func, ast.Attribute)
        and isinstance(func.value, ast.Name)
        and func.value.id == "nni"
    )


def _name_of(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    return call.func.attr


def _target(call: ast.Call, line: int) -> ast.expr:
    if len(call.keywords) != 1 or call.keywords[0].arg != "name":
        raise Unreadable(line, f"@nni.{_name_of(call)} takes one keyword, 'name'")
    return call.keywords[0].value


def _variable(call: ast.Call, node: ast.stmt, line: int) -> Iterator[Edit]:
    target = _target(call, line)
    drawn = call.args[0] if len(call.args) == 1 else None
    if not (isinstance(drawn, ast.Call) and _is_nnis(drawn.func)):
        raise Unreadable(line, "@nni.variable takes one of nni.choice(…), nni.uniform(…), …")
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        assigned = node.targets[0]
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        assigned = node.target
    else:
        raise Unreadable(line, "@nni.variable annotates no assignment of one variable")
    name = ast.unparse(target)
    if ast.unparse(assigned) != name:
        raise Unreadable(
            line, f"@nni.variable is about {name}, and {ast.unparse(assigned)} follows"
        )
    drawn.keywords = [ast.keyword("name", ast.Constant(name))]
    assert node.value is not None
    yield Edit(node.value, padded(node.value, ast.unparse(drawn)))


def _function_choice(call: ast.Call, node: ast.stmt, line: int) -> Iterator[Edit]:
    name = ast.unparse(_target(call, line))
    options = {ast.dump(option) for option in call.args}
    call.keywords = [ast.keyword("name", ast.Constant(name))]
    calls = list(_outermost(node, options))
    if not calls:
        raise Unreadable(line, "@nni.function_choice: none of its calls is in the next statement")
    for each in calls:
        yield Edit(each, padded(each, ast.unparse(call)))


def _outermost(node: ast.AST, options: set[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call) and ast.dump(node) in options:
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(child, options)


def _mutable_layers(call: ast.Call, node: ast.stmt) -> str:
    block = f"mutable_block_{node.end_lineno}"
    parts = []
    for number, layer in enumerate(call.args):
        keys = _layer(layer, node.lineno)
        functions, keywords = _layer_choice(keys["layer_choice"], node.lineno)
        optional = keys.get("optional_inputs", ast.List([], ast.Load()))
        if not isinstance(optional, ast.List) or not isinstance(keys["layer_output"], ast.Name):
            raise Unreadable(node.lineno, "optional_inputs is a list, layer_output a variable")
        if optional.elts and "optional_input_size" not in keys:
            raise Unreadable(node.lineno, "optional_inputs need an optional_input_size")
        arguments = [
            repr(block),
            repr(f"mutable_layer_{number}"),
            functions,
            keywords,
            ast.unparse(keys.get("fixed_inputs", ast.List([], ast.Load()))),
            "{" + ", ".join(f"{_text(v)!r}: {_text(v)}" for v in optional.elts) + "}",
            _text(keys.get("optional_input_size", ast.Constant(0))),
            repr("classic_mode"),
        ]
        made = f"nni.mutable_layer({', '.join(arguments)})"
        last = number == len(call.args) - 1
        parts.append(f"{_text(keys['layer_output'])} = {padded(node, made) if last else made}")
    if not parts:
        raise Unreadable(node.lineno, "@nni.mutable_layers names no layer")
    return "; ".join(parts)


def _text(node: ast.expr) -> str:
    return ast.unparse(node)


def _layer(layer: ast.expr, line: int) -> dict[str, ast.expr]:
    if not isinstance(layer, ast.Dict):
        raise Unreadable(line, "@nni.mutable_layers takes one {layer_choice: …} for each layer")
    keys: dict[str, ast.expr] = {}
    for key, value in zip(layer.keys, layer.values, strict=True):
        name = key.id if isinstance(key, ast.Name) else ""
        if name not in _LAYER_KEYS or name in keys:
            raise Unreadable(line, f"keys of a layer, each once, are {', '.join(_LAYER_KEYS)}")
        keys[name] = value
    missing = {"layer_choice", "layer_output"} - keys.keys()
    if missing:
        raise Unreadable(line, f"a layer needs {' and '.join(sorted(missing))}")
    return keys


def _layer_choice(value: ast.expr, line: int) -> tuple[str, str]:
    """Return two dicts as text: from each call to its function, and to its keyword arguments."""
    functions, keywords = [], []
    for option in value.elts if isinstance(value, ast.List) else ():
        if not isinstance(option, ast.Call) or option.args:
            raise Unreadable(line, "layer_choice lists calls with keyword arguments only")
        name = repr(_text(option))
        functions.append(f"{name}: {_text(option.func)}")
        given = (f"{each.arg!r}: {_text(each.value)}" for each in option.keywords)
        keywords.append(f"{name}: {{{', '.join(given)}}}")
    if not functions:
        raise Unreadable(line, "layer_choice is a list of calls")
    return "{" + ", ".join(functions) + "}", "{" + ", ".join(keywords) + "}"
