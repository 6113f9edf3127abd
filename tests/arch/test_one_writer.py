"""A trial's state is changed by one module, which knows all moves that there are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "dispatcher" / "core"

#: Fields that say where a trial is, and since when.
OF_A_MOVE = {"state", "since"}


def assigned(text: str) -> Iterator[tuple[int, str]]:
    """Attributes that a module assigns to, with their lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.lineno, node.attr


def test_only_moves_change_where_a_trial_is() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(CORE.rglob("*.py"))
        if path.name != "moves.py"
        for line, name in assigned(path.read_text())
        if name in OF_A_MOVE
    ]
    assert not wrong, "\n".join(wrong)


def test_the_rule_bites() -> None:
    text = "state.trials[1].state = S.ENDED\ntrial.since, x = 1, 2\ntrial.final = trial.state"
    assert sorted(name for _, name in assigned(text)) == ["final", "since", "state"]
    assert {name for _, name in assigned((CORE / "moves.py").read_text())} >= OF_A_MOVE
