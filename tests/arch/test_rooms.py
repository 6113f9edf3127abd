"""Which room may know which, finer than the contracts of import-linter; and who joins rooms."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("dispatcher", "tuners", "trial_runtime", "nfs_setup")

#: What any room may import beside itself.
COMMON = {"core", "errors", "ports", "codec", "state_codec", "ownership"}

#: What each room may import beyond that. The command line is no room in this sense.
MORE = {
    "backends": {"trial_runtime", "ssh", "remote_python", "code_archive", "wheelhouse"},  # tools
    "channel": {"trial_runtime"},
    "chaos": {"trial_runtime"},
    "code_archive": set[str](),
    "control": {"trial_runtime"},
    # How a root is spelled, what built-in ones take, and what of a folder is code.
    "experiment": {"trial_runtime", "tuners", "code_archive"},
    "queries": set[str](),
    "remote_python": {"trial_runtime", "ssh", "wheelhouse"},
    "ssh": {"trial_runtime"},  # pauses, and where known hosts are recorded
    "store": {"trial_runtime"},
    "tuner_host": {"trial_runtime", "tuners"},
    "weight_keeper": {"trial_runtime"},
    "wheelhouse": set[str](),
}

#: The only modules that join rooms, which are all others' only way to one another.
JOINERS = {
    "api",
    "attempt_files",
    "background",
    "cli",
    "conformance",
    "creating",
    "engine",
    "finding",
    "head",
    "notebook",
    "past",
    "leading",
    "platforms",
    "tuner_tools",
    "upkeep",
    "wiring",
}

#: All that the core takes from outside itself and ``dispatcher.errors``.
FOR_THE_CORE = {"collections", "collections.abc", "dataclasses", "enum", "typing"}


MOST_IN_THE_HALL = 15
MOST_LINES = 420


@cache
def graph() -> grimp.ImportGraph:
    """Imports at any depth, late ones too; those for type checkers only are left out."""
    return grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)


def part(module: str) -> str:
    """``store`` for ``dispatcher.store.journal``; ``tuners`` for ``tuners.base``."""
    names = module.split(".")
    return names[1] if names[0] == "dispatcher" and len(names) > 1 else names[0]


def known_to(name: str) -> dict[str, set[str]]:
    """The parts that a part imports → the modules that do."""
    found: dict[str, set[str]] = {}
    for module in graph().modules:
        if part(module) == name:
            for imported in graph().find_modules_directly_imported_by(module):
                if part(imported) != name:
                    found.setdefault(part(imported), set()).add(module)
    return found


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("room", MORE)
def test_a_room_knows_the_common_ground_and_no_neighbour(room: str) -> None:
    surplus = {k: v for k, v in known_to(room).items() if k not in COMMON | MORE[room]}
    assert not surplus, "let them meet in dispatcher/ports.py, or be joined in head.py"


def test_each_folder_of_the_dispatcher_is_a_known_room() -> None:
    folders = {path.parent.name for path in (ROOT / "dispatcher").glob("*/__init__.py")}
    joining = folders & JOINERS
    assert folders == {*MORE, "core", "cli"} | joining


def test_the_map_names_each_room_and_each_file_of_the_hall() -> None:
    """Mutation: a folder or a file of the hall that ARCHITECTURE.md does not name."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = {f"dispatcher/{p.parent.name}" for p in (ROOT / "dispatcher").glob("*/__init__.py")}
    hall = {p.name for p in (ROOT / "dispatcher").glob("*.py")} - {"__init__.py"}
    assert not {name for name in rooms | hall if f"`{name}`" not in page}
    assert len(hall) < MOST_IN_THE_HALL, "a room is missing: see docs/decisions/0038"


def test_no_file_is_longer_than_can_be_read_at_once() -> None:
    lines = {p: len(p.read_text().splitlines()) for p in files(*PACKAGES)}
    assert not {p: many for p, many in lines.items() if many > MOST_LINES}


def test_only_these_modules_join_rooms() -> None:
    rooms = set(MORE) | {"cli"}
    outside = {part(m) for m in graph().modules if m.startswith("dispatcher.")} - rooms
    joining = {name: known_to(name).keys() & rooms for name in outside}
    joining = {name: found for name, found in joining.items() if len(found) > 1}
    assert joining.keys() <= JOINERS, joining


def test_the_common_ground_knows_no_room() -> None:
    rooms = set(MORE) | {"cli"}
    for name in COMMON:
        assert not known_to(name).keys() & rooms


@pytest.mark.parametrize("path", files("dispatcher/core"), ids=lambda p: p.stem)
def test_the_core_imports_only_plain_types(path: Path) -> None:
    assert outside_the_core(path.read_text()) == set()


def test_the_rule_for_the_core_bites() -> None:
    text = (
        "import time\nfrom os import path\nfrom dispatcher.ports import JournalEntry\nimport enum\n"
    )
    late = "def f():\n    from collections import abc, deque\n    import importlib\n"
    assert outside_the_core(text + late) == {"time", "os", "dispatcher.ports", "importlib"}


def outside_the_core(text: str) -> set[str]:
    """What a module of the core imports that it may not."""
    return {
        name
        for name in imports(ast.walk(ast.parse(text)))
        if name not in FOR_THE_CORE | {"dispatcher.errors", "dispatcher.core"}
        and not name.startswith("dispatcher.core.")
    }


def test_torch_is_never_loaded_by_an_import_of_ours() -> None:
    """Half a second that ten thousand trials would pay; and it is an extra."""
    trees = {p: ast.parse(p.read_text()) for p in files(*PACKAGES)}
    assert len(trees) > 200
    assert not [path for path, tree in trees.items() if "torch" in loaded_by(tree)]


def test_the_rule_for_torch_bites() -> None:
    assert "torch" in loaded_by(ast.parse("try:\n    import torch.nn\nfinally:\n    pass\n"))
    assert not loaded_by(ast.parse("def f():\n    import torch\n"))
    assert not loaded_by(ast.parse("if TYPE_CHECKING:\n    import torch\n"))


def loaded_by(tree: ast.AST) -> set[str]:
    """The top-level packages that importing a module imports."""
    return {name.partition(".")[0] for name in imports(at_import(tree))}


def imports(nodes: Iterable[ast.AST]) -> set[str]:
    """The modules that these statements import."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")  # relative ones (the module nni) stay in their package
    return found


def at_import(tree: ast.AST) -> list[ast.AST]:
    """The statements that run when a module is imported."""
    found: list[ast.AST] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        found += [node, *at_import(node)]
    return found
