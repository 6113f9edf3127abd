"""One handle for all who have an experiment: commands are short, and few talk with a head."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]

#: Lines of a function of the command line, and of NNI's, below its docstring; a longer one decides
#: something that belongs to `dispatcher/experiments`, or prints two things.
MOST_LINES = 40

#: The modules that open a connection to a head. The list may only shrink.
ASK_HEADS = {
    "attempt_files/by_head.py",
    "experiments/handle.py",
    "experiments/why.py",
    "head/lead.py",
    "live_view/scene.py",
    "web/heads.py",
}


def sources(folder: str) -> dict[str, str]:
    """The text of each module below a folder of the dispatcher, by its path from there."""
    base = ROOT / "dispatcher"
    return {str(p.relative_to(base)): p.read_text() for p in sorted((base / folder).rglob("*.py"))}


def test_functions_of_the_command_line_are_short() -> None:
    """Mutation: a command that opens the store, reads, decides and prints."""
    lengths = {
        f"{path} {name}": many
        for path, text in (sources("cli") | sources("nni/commands")).items()
        for name, many in lengths_of(text).items()
    }
    assert {name: many for name, many in lengths.items() if many > MOST_LINES} == {}


def lengths_of(text: str) -> dict[str, int]:
    """Each function's lines below its docstring, those of functions in it included."""
    found = {}
    for node in nodes_of(text):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                found[node.name] = (body[-1].end_lineno or 0) - body[0].lineno + 1
    return found


def test_lengths_are_those_of_the_bodies() -> None:
    text = (
        'def f(\n    x,\n):\n    """Says so."""\n    a = 1\n    return a\n\ndef g(): "Nothing."\n'
    )
    assert lengths_of(text) == {"f": 2}


def test_few_modules_talk_with_a_head() -> None:
    """Mutation: a command with a connection of its own."""
    clients = {path for path, text in sources(".").items() if "HeadClient(" in text}
    assert clients == ASK_HEADS


def test_commands_find_experiments_by_the_handle() -> None:
    """Mutation: a command that looks an experiment up and opens its record or store by itself."""
    ways = re.compile(
        r"experiments(\.find)? import .*\bfind\b|experiments\.creating import"
        r"|read_config\(|from_json\("
    )
    texts = sources("cli") | sources("nni") | sources("live_view") | sources("notebook")
    assert [path for path, text in texts.items() if ways.search(text)] == []
