"""Python for other machines travels in one way: as a package that is packed, and never as text that
is put together."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]
ON_HOST = ROOT / "dispatcher/remote_python/on_host"

#: The verb that agents have, too, and that is packed beside the others.
FILES = ROOT / "trial_runtime/attempt_folder.py"

#: What a job runs before its agent, alone.
IN_JOB = ROOT / "dispatcher/platforms/google_cloud/in_job.py"

#: What gives a Python its program as an argument: one constant for all that travels, and
#: constants that need no function of another one.
CONSTANTS = {
    "dispatcher/remote_python/bundle.py",
    "dispatcher/platforms/ray/conversation.py",  # a whole file, for the Python that has Ray
    "dispatcher/platforms/ray/cluster.py",  # a whole file, itself
    "dispatcher/platforms/ray/holder.py",  # a constant, which starts an agent below it
    "nfs_setup",  # looks at a host before it sends anything, and changes its user
    "trial_runtime",  # starts Python on its own machine
}

#: Names that another file is to have defined by then; and text of programs, read and joined.
JOINED = re.compile(
    r"F821|_BEGINNINGS|program_text|with_name\(.*_program|\.py\"\)\.read_(text|bytes)"
)


def product() -> list[Path]:
    folders = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_no_program_is_joined_of_texts() -> None:
    assert not [path for path in product() if JOINED.search(path.read_text())]


@pytest.mark.parametrize(
    "line",
    [
        "    print(facts())  # noqa: F821 - goes before this",
        '_TIDY = Path(__file__).with_name("tidy_program.py")',
        '    return folder.joinpath(f"{name}.py").read_text()',
    ],
)
def test_the_rule_bites(line: str) -> None:
    assert JOINED.search(line)


def test_a_program_is_an_argument_in_these_places_only() -> None:
    """``bash -c``, ``sh -c`` and options of ours that are called so are no Python."""
    found = set()
    for path in product():
        name = path.relative_to(ROOT).as_posix()
        for node in nodes_of(path.read_text()):
            texts = [x.value for x in getattr(node, "elts", ()) if isinstance(x, ast.Constant)]
            if "-c" in texts and not {"bash", "sh"} & set(texts):
                found.add(name if name.startswith("dispatcher") else name.partition("/")[0])
    assert found == CONSTANTS


@pytest.mark.parametrize(
    "path", [*sorted(ON_HOST.glob("*.py")), FILES, IN_JOB], ids=lambda path: path.name
)
def test_what_travels_imports_the_library_and_its_neighbours_only(path: Path) -> None:
    for node in nodes_of(path.read_text()):
        if isinstance(node, ast.Import):
            names = {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = {str(node.module).partition(".")[0]}
        else:
            continue
        assert names <= sys.stdlib_module_names, f"{path.name}:{node.lineno}"


def test_each_verb_is_a_module_and_each_module_a_verb_or_part_of_one() -> None:
    from dispatcher.remote_python.on_host.__main__ import ANSWERED, TALKING

    parts = {"__init__", "__main__", "facts", "placing", "processes"}
    modules = {path.stem for path in ON_HOST.glob("*.py")} - parts
    assert modules | {"files"} == {*ANSWERED, *TALKING}
    assert "files" not in modules
