"""A trial has one writer: the core; and where it is, one module of the core, which knows all moves.

What is set elsewhere is a second way to a state, beside ``core.apply``: run only when something
went wrong, and tested least.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

import dispatcher
from dispatcher.core.model import State, Trial
from tests.arch.trees import nodes_of

ROOT = Path(dispatcher.__file__).parent
FIELDS = {field.name for field in fields(Trial)}
OF_THE_STATE = {field.name for field in fields(State)}

#: Fields of the state that others fill: what bytes do not hold, and the trace of a replay by hand.
FILLED = {
    ("state_codec.py", "queue_classes"),
    ("state_codec.py", "first_return"),
    ("store/replay/stepping.py", "trace"),
}

#: What trials are called. Whatever else comes out of ``….trials`` is one, too.
NAMES = {"trial", "child", "waiter", "held_trial"}


#: Fields that say where a trial is, and since when.
OF_A_MOVE = {"state", "since"}

#: Where facts are applied: by the engine, at a head's start, in a study, and in replays. What
#: imports ``dispatcher.core.machine`` itself is in ``.importlinter``.
APPLIES = {"engine.py", "head/beginning.py", "maintenance/stores.py", "store", "study/record.py"}


def assigned(text: str) -> Iterator[tuple[int, str]]:
    """Attributes that a module assigns to, with their lines."""
    for node in nodes_of(text):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.lineno, node.attr


def writes(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the field of each assignment to a trial, also by ``setattr``."""
    nodes = nodes_of(text)
    names = NAMES | set(_taken_from_trials(nodes))
    for node in nodes:
        match node:
            case ast.Attribute(value=base, attr=field, ctx=ast.Store() | ast.Del()):
                if field in FIELDS and _is_trial(base, names):
                    yield node.lineno, field
            case ast.Call(func=function, args=given):
                by_name = _name(function) in {"setattr", "__setattr__"}
                if by_name and any(_is_trial(one, names) for one in given):
                    yield node.lineno, "setattr"
            case _:
                pass


def _is_trial(node: ast.expr, names: set[str]) -> bool:
    return (isinstance(node, ast.Name) and node.id in names) or _of_trials(node)


def _of_trials(node: ast.AST) -> bool:
    """Whether this is ``….trials[…]``, ``….trials.get(…)`` or ``….trials.values()``."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and _name(node.func.value) == "trials"
    return isinstance(node, ast.Subscript) and _name(node.value) == "trials"


def _taken_from_trials(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield names that a trial is bound to: by ``=``, ``:=``, ``for``, or as a parameter."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _of_trials(value):
                yield name
            case ast.NamedExpr(target=ast.Name(id=name), value=value) if _of_trials(value):
                yield name
            case ast.For(target=ast.Name(id=name), iter=value) if _of_trials(value):
                yield name
            case ast.comprehension(target=ast.Name(id=name), iter=value) if _of_trials(value):
                yield name
            case ast.arg(arg=name, annotation=ast.Name(id="Trial")):
                yield name
            case _:
                pass


def _name(node: ast.AST) -> str:
    """The last part of a dotted name."""
    return getattr(node, "attr", getattr(node, "id", ""))


def test_only_the_core_changes_a_trial() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {field}"
        for path in sorted(ROOT.rglob("*.py"))
        if not path.is_relative_to(ROOT / "core")
        for line, field in writes(path.read_text())
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_core_changes_the_state() -> None:
    """Mutation: a room that counts in the state, or puts a trial into one of its collections."""
    written = {
        (path.relative_to(ROOT).as_posix(), field)
        for path in sorted(ROOT.rglob("*.py"))
        if not path.is_relative_to(ROOT / "core")
        for field in of_a_state(path.read_text())
    }
    assert written == FILLED


def of_a_state(text: str) -> Iterator[str]:
    """Yield the fields of whatever is called a state that a module sets, or sets an item of."""
    for node in nodes_of(text):
        match node:
            case ast.Attribute(value=owner, attr=field, ctx=ast.Store() | ast.Del()):
                pass
            case ast.Subscript(
                value=ast.Attribute(value=owner, attr=field), ctx=ast.Store() | ast.Del()
            ):
                pass
            case _:
                continue
        if _name(owner).endswith("state") and field in OF_THE_STATE:
            yield field


def test_facts_are_applied_in_few_places() -> None:
    """Mutation: a room that brings facts into a state of its own, beside the journal."""
    places = {
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.rglob("*.py"))
        if not path.is_relative_to(ROOT / "core") and applies(path.read_text())
    }
    assert {"store" if one.startswith("store/") else one for one in places} == APPLIES


def applies(text: str) -> bool:
    """Whether a module takes ``apply`` from the core, as a name or as ``core.apply``."""
    return any(
        (
            isinstance(node, ast.ImportFrom)
            and node.module == "dispatcher.core"
            and any(one.name == "apply" for one in node.names)
        )
        or (
            isinstance(node, ast.Attribute) and node.attr == "apply" and _name(node.value) == "core"
        )
        for node in nodes_of(text)
    )


def test_only_moves_change_where_a_trial_is() -> None:
    """Whatever the record is called that they are set on."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / "core").rglob("*.py"))
        if path.name != "moves.py"
        for line, name in assigned(path.read_text())
        if name in OF_A_MOVE
    ]
    assert not wrong, "\n".join(wrong)


def test_the_rule_bites() -> None:
    text = "state.trials[1].state = S.ENDED\ntrial.since, x = 1, 2\ntrial.final = trial.state"
    assert sorted(name for _, name in assigned(text)) == ["final", "since", "state"]
    moves = (ROOT / "core" / "moves.py").read_text()
    assert {name for _, name in assigned(moves)} >= OF_A_MOVE


def test_each_way_to_write_a_state_is_seen() -> None:
    for text in ("state.phase = X", "self._state.running[trial] = None", "del state.held[1]"):
        assert list(of_a_state(text)), text
    for text in ("host.phase = X", "state.unknown = 1", "print(state.phase)", "state.open.get(1)"):
        assert not list(of_a_state(text)), text


def test_each_way_to_write_is_seen() -> None:
    for text in (
        "state.trials[1].final = 2",
        "trial.state = X",
        "trial.losses += 1",
        "found = self.state.trials.get(1)\nfound.final: str = ''",
        "def f(one: Trial):\n    one.final, two = 1, 2",
        "for one in state.trials.values():\n    one.result = None",
        "if (one := state.trials.get(1)) is not None:\n    del one.result",
        "setattr(trial, name, 1)",
        "object.__setattr__(state.trials[1], name, 1)",
    ):
        assert list(writes(text)), text
    for text in ("worker.state = X", "trial.unknown = 1", "print(trial.final)"):
        assert not list(writes(text)), text
