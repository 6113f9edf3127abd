"""Objects are whole when they are made: nobody fills in a part of another one afterwards."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("dispatcher", "trial_runtime", "tuners", "nfs_setup")

#: Records of state, which are there to be changed; and what is left to mend, which only shrinks.
LEFT = {
    "dispatcher/core/failures.py": 1,
    "dispatcher/core/quarantine.py": 2,
    "dispatcher/core/transitions/attempt.py": 1,
    "dispatcher/core/transitions/user.py": 2,
    "dispatcher/experiment/source.py": 1,
    "dispatcher/head/notice_board.py": 2,
    "dispatcher/nni/tuner/advisor.py": 1,
    "dispatcher/remote_python/on_host/gpus.py": 1,
    "dispatcher/store/replay/stepping.py": 1,
    "dispatcher/tuner_host/gate.py": 4,
    "dispatcher/tuner_host/restore.py": 1,
    "trial_runtime/agent/processes/guard.py": 1,
    "trial_runtime/agent/runners/warm.py": 2,
    "trial_runtime/weights/remote/place.py": 1,
    "nfs_setup/verify/churn.py": 1,
    "nfs_setup/verify/habits.py": 1,
    "nfs_setup/verify/pace.py": 2,
    "nfs_setup/verify/survey.py": 3,
    "nfs_setup/verify/views.py": 4,
}


def filled_in(source: str) -> Iterator[str]:
    """Attributes that are only announced, and assignments to a part of an object's part."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and node.value is None:
            if isinstance(node.target, ast.Attribute):
                yield f"{node.lineno}: {ast.unparse(node)} is announced without a value"
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Attribute)
        ):
            yield f"{node.lineno}: {ast.unparse(node)} is another object's"


def test_no_part_of_an_object_is_set_by_others() -> None:
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if each := list(filled_in(path.read_text(encoding="utf-8"))):
                found[path.relative_to(ROOT).as_posix()] = each
    counts = Counter({name: len(each) for name, each in found.items()})
    more = {name: found[name] for name in counts if counts[name] > LEFT.get(name, 0)}
    assert not more, f"give these to the constructor, or return them: {more}"


def test_the_look_bites() -> None:
    bad = "class A:\n    def __init__(self):\n        self.x: int\n        self.a.b = 1\n"
    assert len(list(filled_in(bad))) == 2
    assert list(filled_in("class A:\n    x: int\n    def f(self):\n        self.x = 1\n")) == []
