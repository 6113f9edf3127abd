"""The names of the files in an experiment's folder are written in one room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]

_NAME = re.compile(
    r"([^ /]+\.sqlite|experiment[^ /]*\.json|run\.json|leader\.json|(head|lead)\.lock"
    r"|(head|tuner|chaos)\.log|head\.stderr)"
)


def names_in(text: str) -> Iterator[tuple[int, str]]:
    """Each such name that is a string of its own, with its line; prose is none."""
    for node in nodes_of(text):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            last = node.value.rpartition("/")[2]
            if " " not in node.value and _NAME.fullmatch(last):
                yield node.lineno, node.value


def test_such_names_are_seen() -> None:
    text = 'a / "run.json"\n"""It is in run.json."""\nb = f"{c}/logs/head.log"\nd = "row.json"\n'
    assert list(names_in(text)) == [(1, "run.json"), (3, "/logs/head.log")]


def test_no_room_but_folders_spells_them() -> None:
    spelled = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / "dispatcher").rglob("*.py"))
        if path.parent != ROOT / "dispatcher" / "folders"
        for line, name in names_in(path.read_text())
    ]
    assert spelled == []  # take them from dispatcher.folders.names, or of an ExperimentFolder
