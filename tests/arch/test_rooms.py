"""The map of rooms, what the core and imports of ours may load, and the length of files.

Which room may know which is in ``.importlinter``.
"""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.arch.trees import nodes_of, tree_of

ROOT = Path(__file__).parents[2]
PACKAGES = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")

#: All that the core takes from outside itself and ``dispatcher.errors``.
FOR_THE_CORE = {"collections", "collections.abc", "dataclasses", "enum", "typing"}

#: The facts of attempts are the agents' types: the core's one exception, in these modules.
FACTS = "trial_runtime.facts"
KNOW_THE_FACTS = {"core.actions", "core.events.workers", "core.ids", "core.model"}

#: Results are JSON texts, whose numbers may end a search or fail a trial: one module reads them.
READS_RESULTS = {"core.results": {"json"}}

#: An import of one module of the core does not wait for the others.
FETCHES_LATE = {"core.__init__": {"dispatcher.late_names"}}
ELSEWHERE = READS_RESULTS | FETCHES_LATE


MOST_IN_THE_HALL = 15
MOST_LINES = 420


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_the_map_names_each_room_and_each_file_of_the_hall() -> None:
    """Mutation: a folder or a file of the hall that ARCHITECTURE.md does not name."""
    rooms = {f"dispatcher/{p.parent.name}" for p in (ROOT / "dispatcher").glob("*/__init__.py")}
    hall = {p.name for p in (ROOT / "dispatcher").glob("*.py")} - {"__init__.py"}
    assert rooms | hall == set(on_the_map())
    assert len(hall) < MOST_IN_THE_HALL, "a room is missing: see docs/decisions/0038"


def test_the_map_has_the_order_that_is_checked() -> None:
    """Mutation: two rows of the map change places, or a layer is missing from the contract."""
    height = {room: row for row, line in enumerate(layers()) for room in line}
    heights = [height[Path(name).stem] for name in on_the_map()]
    assert heights == sorted(heights)


def on_the_map() -> list[str]:
    """The rooms and files of ARCHITECTURE.md's table, from the top down."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    table = page.partition("| room | does | never |")[2].partition("\n\n")[0]
    first = [line.split(" | ")[0] for line in table.splitlines()]
    return [name for cell in first for name in re.findall(r"`([^`]+)`", cell)]


def layers() -> list[list[str]]:
    """The layers of the dispatcher as import-linter checks them, from the top down."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    lines = contracts["importlinter:contract:layers"]["layers"].split("\n")
    return [[name.strip(" ()") for name in line.split("|")] for line in lines if line.strip()]


def test_no_file_is_longer_than_can_be_read_at_once() -> None:
    lines = {p: len(p.read_text().splitlines()) for p in files(*PACKAGES)}
    assert not {p: many for p, many in lines.items() if many > MOST_LINES}


@pytest.mark.parametrize("path", files("dispatcher/core"), ids=lambda p: p.stem)
def test_the_core_imports_only_plain_types(path: Path) -> None:
    name = ".".join(path.relative_to(ROOT / "dispatcher").with_suffix("").parts)
    surplus = {FACTS} if name in KNOW_THE_FACTS else ELSEWHERE.get(name, set[str]())
    assert outside_the_core(path.read_text()) == surplus


def test_the_facts_of_attempts_are_plain_types() -> None:
    tree = ast.parse((ROOT / "trial_runtime" / "facts.py").read_text())
    assert imports(ast.walk(tree)) <= FOR_THE_CORE | {"__future__", "sys"}


def test_agents_have_no_second_set_of_facts() -> None:
    """Mutation: a type of the core for what an agent has a type for."""
    kinds = {"AttemptStarted", "MetricReported", "FinalReported", "AttemptEnded", "StartAttempt"}
    classes = {
        (node.name, path.relative_to(ROOT).as_posix())
        for path in files("dispatcher", "trial_runtime")
        for node in nodes_of(path.read_text())
        if isinstance(node, ast.ClassDef) and node.name in kinds
    }
    assert classes == {(kind, "trial_runtime/facts.py") for kind in kinds}


def test_what_went_for_good_is_not_there() -> None:
    """Mutation: a metric with a made-up number, a second wire for what agents report, or modules
    of others that are written anew."""
    assert not (ROOT / "trial_runtime" / "agent_words.py").exists()
    assert not (ROOT / "trial_runtime" / "nni_shim" / "companions").exists()
    texts = {path: path.read_text() for path in files(*PACKAGES)}
    assert not [path for path, text in texts.items() if "_BEYOND_ALL" in text]


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
        for name in imports(nodes_of(text))
        if name not in FOR_THE_CORE | {"dispatcher.errors", "dispatcher.core"}
        and not name.startswith("dispatcher.core.")
    }


def test_torch_is_never_loaded_by_an_import_of_ours() -> None:
    """Half a second that ten thousand trials would pay; and it is an extra."""
    trees = {p: tree_of(p.read_text()) for p in files(*PACKAGES)}
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
