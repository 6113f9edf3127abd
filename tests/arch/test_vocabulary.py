"""The product's names, docstrings and pages keep to the vocabulary of docs/glossary.md.

A newcomer who meets ``told`` as a configuration here and as a message there reads the code to
understand its names, where names should explain the code.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dispatcher.cli.commands import ROOT as COMMANDS
from dispatcher.cli.lazy_group import Table, load
from tests.arch.trees import tree_of

ROOT = Path(__file__).parents[2]
PACKAGES = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")

#: They say that somebody spoke or looked, and not what the thing is.
NO_NAMES = {"told", "found", "said", "words"}

#: They have a plain word on a page: received, logged, on other machines, anybody who.
NO_PROSE = re.compile(
    r"\b(told|said|elsewhere|whoever|fingers|doors?|desk|leash|baton|luggage)\b", re.IGNORECASE
)

#: Names of code, such as keys of ``--json``, which a page must write as they are.
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)

#: Promised to others: fields of ``--json``, and what other packages implement or read.
PROMISED = {
    ("dispatcher/platforms/agents/attended.py", "told"),
    ("dispatcher/platforms/agents/attended.py", "Told"),
    ("dispatcher/platforms/ssh/visit.py", "told"),
    ("nfs_setup/verify/facts.py", "found"),
    ("trial_runtime/errors.py", "found"),  # until 0.3
}

#: A docstring says what the thing does or is; these begin a clause about something else.
NO_BEGINNINGS = {
    "Who", "Whose", "Whom", "What", "Of", "Its", "Those", "Which", "Where", "Told", "That",
}  # fmt: skip

#: Names that NNI gave, which its users' scripts import from our stand-ins.
OF_NNI = {"AlgorithmConfig", "Experiment", "ExperimentConfig"}

#: From so many on, a reader cannot guess what each argument is for.
ARGUMENTS = 3

Function = ast.FunctionDef | ast.AsyncFunctionDef


PAGES = sorted(
    page.relative_to(ROOT)
    for page in (
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "contributing").glob("*.md"),
    )
    if page.name != "glossary.md"  # it names them
)


@cache
def _trees() -> dict[Path, ast.Module]:
    """Every module of the product, by its path from the root."""
    return {
        path.relative_to(ROOT): tree_of(path.read_text())
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def _rooms() -> list[str]:
    """``dispatcher/core``, ``tuners/enas`` …, and each package's own modules."""
    return sorted({_room(path) for path in _trees()})


def _room(path: Path) -> str:
    return "/".join(path.parts[:2] if len(path.parts) > 2 else path.parts[:1])


def _modules(room: str) -> Iterator[tuple[Path, ast.Module]]:
    for path, tree in _trees().items():
        if _room(path) == room:
            yield path, tree


@pytest.mark.parametrize("room", _rooms())
def test_no_name_is_a_verb_of_speech(room: str) -> None:
    wrong = [
        f"{path}:{line}: {name}"
        for path, tree in _modules(room)
        for line, name in _names(tree)
        if _is_speech(name) and (str(path), name) not in PROMISED
    ]
    assert not wrong, "name the thing (docs/glossary.md):\n" + "\n".join(wrong)


def _is_speech(name: str) -> bool:
    return name.strip("_").lower() in NO_NAMES


def test_neither_capitals_nor_underlines_hide_a_word() -> None:
    text = "class Words:\n    _told: int\n    def said_(self, found, told_by): ...\n"
    names = [name for _, name in _names(ast.parse(text))]
    assert {name for name in names if _is_speech(name)} == {"Words", "_told", "said_", "found"}


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Parameters, functions, classes and attributes, each where it is defined."""
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            yield node.lineno, node.name
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    yield inner.lineno, inner.target.id


@pytest.mark.parametrize("package", PACKAGES)
def test_a_class_name_means_one_thing(package: str) -> None:
    defined = defaultdict(list)
    for path, tree in _trees().items():
        if path.parts[0] != package:
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(str(path))
    twice = {name: where for name, where in defined.items() if len(where) > 1}
    assert not {name: where for name, where in twice.items() if name not in OF_NNI}


@pytest.mark.parametrize("room", _rooms())
def test_a_docstring_begins_with_what_the_thing_does_or_is(room: str) -> None:
    wrong = [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path, tree in _modules(room)
        for line, text in _docstrings(tree)
        if text.split()[0].strip(",.:;") in NO_BEGINNINGS
    ]
    assert not wrong, "\n".join(wrong)


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_pages_are_written_in_plain_words(page: Path) -> None:
    """``docs/cli.md`` is made from the help pages, so that these are read as well."""
    wrong = [
        f"{page}:{number}: {word.group()}"
        for number, line in enumerate(_prose((ROOT / page).read_text()), start=1)
        for word in NO_PROSE.finditer(line)
    ]
    assert not wrong, "write what it is (docs/glossary.md):\n" + "\n".join(wrong)


def _prose(text: str) -> list[str]:
    """The lines of a page without the code in them."""
    return CODE.sub(lambda code: "\n" * code.group().count("\n"), text).split("\n")


@pytest.mark.parametrize("page", ["cli.md", "configuration.md"])
def test_a_line_of_help_begins_with_what_the_thing_does_or_is(page: str) -> None:
    wrong = [
        f"{page}:{number}: {meaning}"
        for number, line in enumerate((ROOT / "docs" / page).read_text().split("\n"), start=1)
        for meaning in [_meaning(line)]
        if meaning.split(" ")[0].strip(",.:;") in NO_BEGINNINGS
    ]
    assert not wrong, "\n".join(wrong)


def _meaning(line: str) -> str:
    """What a row of a table, or an item that begins with code, says of a thing; else nothing."""
    if line.startswith("| ") and line.endswith(" |"):
        return line.removesuffix(" |").rpartition(" | ")[2]
    return line.partition("`: ")[2] if line.startswith("- `") else ""


def test_a_meaning_is_seen_in_tables_and_in_lists() -> None:
    assert _meaning("| `--a` | The text. |") == "The text."
    assert _meaning("- `--a, -b FILE`: The text.") == "The text."
    assert _meaning("The text.") == ""


@pytest.mark.parametrize("room", _rooms())
def test_many_arguments_are_explained(room: str) -> None:
    wrong = [
        f"{path}:{function.lineno}: {function.name}"
        for path, tree in _modules(room)
        for function in _public_functions(tree.body)
        if not _explains(function) and (path, function.name) not in _commands()
    ]
    assert not wrong, "they need Args:\n" + "\n".join(wrong)


def _public_functions(body: list[ast.stmt]) -> Iterator[Function]:
    """Functions and methods that others may call, with so many arguments."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public_functions(node.body)
        if isinstance(node, Function) and not node.name.startswith("_"):
            if any(
                isinstance(one, ast.Name) and one.id == "overload" for one in node.decorator_list
            ):
                continue  # the function that follows explains them
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if len([one for one in every if one.arg not in ("self", "cls")]) >= ARGUMENTS:
                yield node


def _explains(function: Function) -> bool:
    """Has the section, or sends its reader to the Protocol or base class that has it."""
    text = ast.get_docstring(function) or ""
    return "Args:\n" in text or text.startswith("See :")


@cache
def _commands() -> set[tuple[Path, str]]:
    """Commands of the command line: their docstrings are help pages, which list the arguments."""
    return set(_of_table(COMMANDS))


def _of_table(table: Table) -> Iterator[tuple[Path, str]]:
    for name, entry in table.items():
        module, _, function = entry.home.partition(":")
        below = getattr(load(name, entry), "table", None)
        if below is None:
            yield Path("dispatcher", *module.split(".")).with_suffix(".py"), function
        else:
            yield from _of_table(below)
