"""Run by an old Python: which names of its standard library the given files use in vain.

Prints ``FILE:LINE: name`` for each. What stands behind a look at the version, or is asked for
with ``hasattr`` or ``getattr`` somewhere in the same file, is let be.
"""

import ast
import importlib
import sys


def missing(path: str) -> "list[str]":
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    asked = {
        node.args[1].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("hasattr", "getattr")
        and isinstance(node.args[1], ast.Constant)
    }
    modules = {}
    found = []
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                modules[name.asname or name.name] = load(name.name)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            module = load(node.module)
            if module is not None:
                found += [
                    (node.lineno, node.module + "." + name.name)
                    for name in node.names
                    if not hasattr(module, name.name)
                ]
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module is not None and node.attr not in asked and not hasattr(module, node.attr):
                found.append((node.lineno, node.value.id + "." + node.attr))
    return [f"{path}:{line}: {name}" for line, name in found]


def walk(node: ast.AST) -> "list[ast.AST]":
    """All nodes but those for type checkers, and for later versions."""
    if isinstance(node, ast.If):
        test = ast.unparse(node.test)
        if test == "TYPE_CHECKING" or test.startswith("sys.version_info >= "):
            return [x for each in node.orelse for x in walk(each)]
    return [node] + [x for child in ast.iter_child_nodes(node) for x in walk(child)]


def load(name: str) -> object:
    """A module of the standard library; None for others."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        return None
    path = getattr(module, "__file__", "") or ""
    return None if "site-packages" in path else module


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print("\n".join(missing(each)), end="\n" if missing(each) else "")
