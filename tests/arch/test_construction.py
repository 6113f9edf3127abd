"""Objects are whole when their constructor returns: nobody else gives them what they need.

A field that is only declared has no value until somebody remembers, and a field that another object
fills makes the order of statements part of the design. Make the parts first, and give them away.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("dispatcher", "nfs_setup", "trial_runtime", "tuners")

#: What is filled from outside, by file and field. One more needs a reason that stands here.
FILLED = {
    # A thread's own storage of the standard library.
    ("dispatcher/tuner_host/gate.py", "self._here.request"),
    # NNI's own flag, which its advisors read.
    ("dispatcher/nni/tuner/advisor.py", "self._advisor.stopping"),
    # A Popen whose child somebody else has waited for.
    ("trial_runtime/agent/processes/guard.py", "self._warden.returncode"),
}


def test_objects_are_whole_when_they_are_made() -> None:
    """Mutation: a field of ``self`` without a value; a part that gets another part later."""
    paths = [path for room in PRODUCT for path in sorted((ROOT / room).rglob("*.py"))]
    filled = {
        (path.relative_to(ROOT).as_posix(), field)
        for path in paths
        for field in filled_later(path.read_text())
    }
    assert not filled - FILLED, "give it to the constructor"


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
    assert list(filled_later(text)) == [
        "self.late",
        "self._b.late",
        "self._b.also",
        "self._b.c.later",
    ]


def filled_later(text: str) -> Iterator[str]:
    """The fields in a module that are only declared, or set in an object that ``self`` holds."""
    for node in ast.walk(ast.parse(text)):
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
