"""Names of modules in docstrings and pages lead somewhere: a move that forgets one is seen here.

Decisions and the changelog say what was there then.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.arch.trees import tree_of

ROOT = Path(__file__).parents[2]
PACKAGES = ("dispatcher", "nfs_setup", "trial_runtime", "tuners")
_DOTTED = re.compile(rf"`[~!]?((?:{'|'.join(PACKAGES)})(?:\.(?!py\b)\w+)+)(?:\(\))?`")
_FILE = re.compile(rf"`((?:{'|'.join(PACKAGES)}|tests|benchmarks|examples)/[\w/.-]*\w)`")
_NEAR = re.compile(r":\w+:`~?(\.[a-z]\w+(?:\.\w+)*)(?:\(\))?`")
_SNIPPETS = re.compile(r"^( *)```.*?^\1```", re.M | re.S)


def texts() -> list[Path]:
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts]
    readmes = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("examples/*/README.md")]
    readmes.remove(ROOT / "CHANGELOG.md")
    return sorted({*sources, *tests, *pages, *readmes})


def test_modules_and_what_they_have_are_there() -> None:
    assert not [
        f"{path.relative_to(ROOT)}: {name}"
        for path in texts()
        for name in dotted_names(path)
        if not leads_somewhere(name)
    ]


def test_files_are_there() -> None:
    assert not [
        f"{path.relative_to(ROOT)}: {name}"
        for path in texts()
        for name in _FILE.findall(prose(path))
        if not (ROOT / name).exists() and not (path.parent / name).exists()
    ]


def test_the_rule_knows_what_is_there() -> None:
    """Mutation: a module that was moved, a function that was renamed, a method that went."""
    for name in (
        "dispatcher.testing",
        "tuners.Tuner.wait_for",
        "tuners.base.Tuner.lock",
        "trial_runtime.shared_store",
        "dispatcher.experiments.handle.ExperimentHandle.find",
        ".handle.ExperimentHandle",
    ):
        assert leads_somewhere(name)
    for name in (
        "dispatcher.backends",
        ".no_such_module",
        "dispatcher.testing.repeat",
        "tuners.Tuner.wait_long",
        "dispatcher.experiments.handle.ExperimentHandle.find_many",
    ):
        assert not leads_somewhere(name)


def dotted_names(path: Path) -> list[str]:
    """The names in backquotes that begin with one of our packages, or with a dot."""
    text = prose(path)
    return [*_DOTTED.findall(text), *_NEAR.findall(text)]


def prose(path: Path) -> str:
    """The text of a file without the code that a page shows."""
    text = path.read_text()
    return (_SNIPPETS.sub("", text) if path.suffix == ".md" else text).replace("``", "`")


def leads_somewhere(name: str) -> bool:
    """Whether it is a module, or a name that a module binds, with attributes that it mentions.

    With a dot in front: of whichever package.
    """
    if name.startswith("."):
        return any(leads_somewhere(package + name) for package in _packages())
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:length])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return _has(file, parts[length:])
    return False


def _has(file: Path, rest: list[str]) -> bool:
    if not rest:
        return True
    origin = _bound(file).get(rest[0])
    if origin is None:
        return False
    if len(rest) == 1:
        return True
    if origin:
        return leads_somewhere(".".join([origin, *rest[1:]]))
    return all(re.search(rf"\b{re.escape(one)}\b", file.read_text()) for one in rest[1:])


@cache
def _packages() -> list[str]:
    inits = [init for package in PACKAGES for init in (ROOT / package).rglob("__init__.py")]
    return [".".join(init.parent.relative_to(ROOT).parts) for init in inits]


@cache
def _bound(file: Path) -> dict[str, str]:
    """The names at the top of a module: each with where it is from, if it is imported."""
    bound: dict[str, str] = {}
    for node in _at_the_top(tree_of(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound[node.name] = ""
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            bound.setdefault(node.value, "")  # of a table of names that are imported late
    return bound


def _at_the_top(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _at_the_top(child)
