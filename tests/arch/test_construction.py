"""Objects are whole when their constructor returns: nobody else gives them what they need.

A field that is only declared has no value until somebody remembers, one that another method is the
first to assign is there for who calls that first, and a field that another object fills makes the
order of statements part of the design. Make the parts first, and give them away.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.arch.trees import tree_of

ROOT = Path(__file__).parents[2]
PRODUCT = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")

#: What is filled from outside, by file and field. One more needs a reason that stands here.
FILLED = {
    # A thread's own storage of the standard library.
    ("dispatcher/tuner_host/gate.py", "self._here.request"),
    # NNI's own flag, which its advisors read.
    ("dispatcher/nni/tuner/advisor.py", "self._advisor.stopping"),
    # A Popen whose child somebody else has waited for.
    ("trial_runtime/agent/processes/guard.py", "self._warden.returncode"),
}

#: What has no value when the constructor returns, by class and field, with the reason.
LATER = {
    # A login is there within the `with` and neither before nor after it; a visit is used nowhere
    # else.
    "SshVisit._connection",
    "SshVisit._fitted",
    "SshVisit._address",
    # The constructor of fsspec calls `_connect`.
    "CheckedSftp.client",
    "CheckedSftp.ftp",
    # A thread of the standard library has a name; this gives it another.
    "RequestThread.name",
    # The library's connection has a state that requests get; this adds whose it is.
    "KnownConnection.app_state",
    # The library's connection has a socket once it is connected, and this connects to another kind.
    "Encrypted.sock",
    "_UnixConnection.sock",
}

#: What makes an object, or gives its class the values that all begin with.
MAKERS = ("__init__", "__post_init__", "__new__")

#: The classes of a name, which in a package means one thing.
Classes = Mapping[str, list[ast.ClassDef]]

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _product() -> dict[str, ast.Module]:
    paths = [path for room in PRODUCT for path in sorted((ROOT / room).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): tree_of(path.read_text()) for path in paths}


def test_objects_are_whole_when_they_are_made() -> None:
    """Mutation: a field of ``self`` without a value; a part that gets another part later."""
    filled = {(path, field) for path, tree in _product().items() for field in filled_later(tree)}
    assert not filled - FILLED, "give it to the constructor"


def test_the_constructor_gives_every_field() -> None:
    """Mutation: a method that makes the other half of an object when the first is in use."""
    late = set(assigned_later(_product().values()))
    assert not late - LATER, "make it in the constructor, or another object that has it from there"
    assert not LATER - late, "these are whole by now"


def test_the_rule_finds_both_ways() -> None:
    text = """
class A:
    declared: int

    def __init__(self, b):
        self.late: int
        self.whole: int = 1
        self._b = b
        self._b.late = self._b.also = 2
        self._b.c.later += 1
        b.of_an_argument = 3
        self._counts[b] = 4
"""
    assert list(filled_later(ast.parse(text))) == [
        "self.late",
        "self._b.late",
        "self._b.also",
        "self._b.c.later",
    ]


def test_the_rule_finds_what_a_second_method_makes() -> None:
    text = """
class Base:
    declared: int
    shared = 1

    def __init__(self):
        self.here = 1
        self._begin()

    def _begin(self):
        self.begun, (self.one, self.two) = 2, (3, 4)

    def again(self):
        self.declared = self.shared = self.here = self.begun = self.one = 5

class Heir(pkg.Base[int]):
    def __init__(self):
        super().__init__()
        self._go_on()

    def _go_on(self):
        self.late_but_here = 0

    def assemble(self):
        self.here = 6
        self._calls: int = 7
        self.first, self.second = 8, 9

    async def ask(self):
        def inner():
            self.within = 10
        for self.step in (): pass

    @property
    def shown(self): ...

    @shown.setter
    def shown(self, value):
        self.shown = value
"""
    late = {"_calls", "first", "second", "step", "within"}
    assert set(assigned_later([ast.parse(text)])) == {f"Heir.{field}" for field in late}


def filled_later(tree: ast.Module) -> Iterator[str]:
    """The fields in a module that are only declared, or set in an object that ``self`` holds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            if node.value is None or _is_another_ones(node.target):
                yield ast.unparse(node.target)
        elif isinstance(node, ast.Assign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute) and _is_another_ones(target):
                    yield ast.unparse(target)


def _is_another_ones(target: ast.Attribute) -> bool:
    """Whether it is ``self.a.b``, of whatever depth, and not ``self.a``."""
    owner = target.value
    if not isinstance(owner, ast.Attribute):
        return False
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id == "self"


def assigned_later(trees: Iterable[ast.Module]) -> Iterator[str]:
    """``Class.field`` for each field of ``self`` that nothing gives while the object is made: no
    constructor of the class or of a base of ours, and no method that one of these calls."""
    classes = defaultdict(list)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(node)
    for name, defined in classes.items():
        for one in defined:
            given = set(_given(_with_bases(one, classes)))
            for method in _methods(one):
                yield from (f"{name}.{field}" for field in _stores(method) if field not in given)


def _with_bases(one: ast.ClassDef, classes: Classes) -> list[ast.ClassDef]:
    """The class and those of ours that it inherits from."""
    lineage = [one]
    for each in lineage:
        for base in each.bases:
            name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
            lineage.extend(known for known in classes.get(name, ()) if known not in lineage)
    return lineage


def _given(lineage: list[ast.ClassDef]) -> Iterator[str]:
    """The fields that an object of such a class has when it is made."""
    methods = defaultdict(list)
    for one in lineage:
        for node in one.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id
            elif isinstance(node, ast.Assign):
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        for method in _methods(one):
            methods[method.name].append(method)
            if method.decorator_list:
                yield method.name  # a property, whose setter assigns it
    making = [name for name in MAKERS if name in methods]
    for name in making:
        for method in methods[name]:
            yield from _stores(method)
            making.extend(set(_calls(method)) & methods.keys() - set(making))


def _methods(one: ast.ClassDef) -> list[Function]:
    return [node for node in one.body if isinstance(node, Function)]


def _stores(method: Function) -> Iterator[str]:
    """The fields of ``self`` that it assigns."""
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node):
            yield node.attr


def _calls(method: Function) -> Iterator[str]:
    """The methods of ``self`` that it calls."""
    for node in ast.walk(method):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and _is_own(called):
                yield called.attr


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"
