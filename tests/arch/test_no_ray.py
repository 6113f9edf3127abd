"""The head imports no Ray: a driver beside it does, and what that runs in the cluster."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]
RAY = "dispatcher/platforms/ray"

#: Whole files that the driver runs, or sends to the cluster.
BESIDE = {f"{RAY}/{name}.py" for name in ("driver", "cluster", "crew", "holder", "node_news")}


def modules() -> Iterator[tuple[str, tuple[ast.AST, ...]]]:
    for room in ("dispatcher", "trial_runtime", "tuners"):
        for path in (ROOT / room).rglob("*.py"):
            yield str(path.relative_to(ROOT)), nodes_of(path.read_text())


def imported(module: tuple[ast.AST, ...]) -> Iterator[str]:
    """The modules that one imports, those that are named by a text included."""
    for node in module:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (each.value for each in node.args if _is_text(each))  # type: ignore[attr-defined]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_ray_is_imported_beside_the_head_alone() -> None:
    """Mutations: a head that needs Ray's version of Python and its packages; one in whose process
    Ray ends what it has lost."""
    found = {path: set(imported(module)) for path, module in modules()}
    with_ray = {
        path
        for path, names in found.items()
        if any(name == "ray" or name.startswith("ray.") for name in names)
    }
    assert with_ray
    assert with_ray <= BESIDE
    own = {path.removesuffix(".py").replace("/", ".") for path in BESIDE}
    for path, names in found.items():
        inside = {each for each in own if any(f"{name}.".startswith(f"{each}.") for name in names)}
        assert path in BESIDE or not inside, f"{path} loads {inside}"
