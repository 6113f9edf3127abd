"""Tests bend with the code: few private names of it, and few sleeps. Both numbers only fall.

``python -m tests.arch.test_bending`` says where they are.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]
PRODUCT = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")
OUTSIDE = ("tests", "benchmarks", "examples")

#: The most there may be. Whoever takes some away lowers the number; nobody raises it.
MOST_PRIVATE = 75
MOST_SLEEPS = 50

_PRIVATE = re.compile(r"_[a-zA-Z]\w*")
_DOTTED = re.compile(rf"({'|'.join(PRODUCT)})\.([\w.]+\.)?(_[a-zA-Z]\w*)")
#: Public names of namedtuple, whatever they look like.
_OF_TUPLES = {"_asdict", "_fields", "_replace"}
#: The real ones: those of schedules and of stand-ins take no time.
_SLEEP = re.compile(r"\b(time\.sleep|hold\.pace)\(|(?<![\w.])(?<!def )sleep\(")
_BY_NAME = {"delattr", "getattr", "hasattr", "setattr"}


def test_private_names_become_fewer() -> None:
    count = sum(private_uses().values())
    assert count <= MOST_PRIVATE, "make it public if a test needs it, or let the test ask otherwise"


def test_sleeps_become_fewer() -> None:
    count = sum(sleeps().values())
    assert count <= MOST_SLEEPS, "wait for what is to happen: tests.support.processes.wait_until"


def test_the_rule_finds_each_way_to_a_private_name() -> None:
    text = """
from dispatcher.engine import _Fact, Engine
from trial_runtime import session
engine._turn()
engine._own = engine._turn
self._turn
os._exit(1)
row._replace(x=1)
monkeypatch.setattr(session, "_current", None)
monkeypatch.setattr("trial_runtime.session._current", None)
print("_current")
"""
    found = private_names(text, frozenset({"_turn", "_current", "_exit", "_replace"}))
    assert sorted(found) == ["_Fact", "_current", "_current", "_turn", "_turn", "_turn"]


def private_uses() -> Counter[str]:
    """The number of private names of the product in each file outside of it."""
    known = _names_of_the_product()
    uses = {path: private_names(path.read_text(), known) for path in _sources(*OUTSIDE)}
    return Counter({str(path.relative_to(ROOT)): len(names) for path, names in uses.items()})


def sleeps() -> Counter[str]:
    """The number of sleeps in each file of the tests, texts of programs included."""
    here = Path(__file__)
    texts = {path: path.read_text() for path in _sources("tests") if path != here}
    return Counter({str(p.relative_to(ROOT)): len(_SLEEP.findall(t)) for p, t in texts.items()})


def private_names(text: str, known: frozenset[str]) -> list[str]:
    """The private names of the product that a module uses: imported, as attributes, as texts.

    Args:
        text: the module.
        known: the private names that the product gives to anything.
    """
    nodes = list(ast.walk(ast.parse(text)))
    own = {name for node in nodes for name in _given(node, by_self=True)}
    return [name for node in nodes for name in _used(node, known, own)]


def _used(node: ast.AST, known: frozenset[str], own: set[str]) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PRODUCT):
        yield from (alias.name for alias in node.names if _PRIVATE.fullmatch(alias.name))
    elif isinstance(node, ast.Attribute) and _is_private(node.attr, known):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner not in ("os", "sys") and not (owner in ("self", "cls") and node.attr in own):
            yield node.attr
    elif isinstance(node, ast.Call):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield from _of_text(argument.value, called, known)


def _is_private(name: str, known: frozenset[str]) -> bool:
    return name in known and name not in _OF_TUPLES


def _of_text(text: str, called: str, known: frozenset[str]) -> Iterator[str]:
    """``setattr(x, "_name", …)``, and ``"room.module._name"`` wherever it is an argument."""
    dotted = _DOTTED.fullmatch(text)
    if called in _BY_NAME and text in known:
        yield text
    elif dotted is not None:
        yield dotted[3]


@cache
def _names_of_the_product() -> frozenset[str]:
    names: set[str] = set()
    for path in _sources(*PRODUCT):
        for node in nodes_of(path.read_text()):
            names.update(_given(node))
    return frozenset(name for name in names if _PRIVATE.fullmatch(name))


def _given(node: ast.AST, *, by_self: bool = False) -> Iterator[str]:
    """The name that a statement gives to something; of attributes perhaps those of self only."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        if not by_self or getattr(node.value, "id", "") in ("self", "cls"):
            yield node.attr
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def _sources(*folders: str) -> list[Path]:
    peers = ROOT / "benchmarks" / "envs"
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in found if peers not in path.parents]


if __name__ == "__main__":
    for what, counted in (("private names", private_uses()), ("sleeps", sleeps())):
        print(f"{sum(counted.values())} {what}")
        for where, count in counted.most_common():
            if count:
                print(f"{count:6} {where}")
