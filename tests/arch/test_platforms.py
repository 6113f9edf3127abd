"""A platform is one folder and an entry point: nobody else knows one of them by its kind."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from dispatcher.experiment.plugged import GROUP

ROOT = Path(__file__).parents[2]

#: Where this machine and machines that are logged in to are known as such: their own folders, the
#: library that logs in, programs that run behind it, commands about machines, NNI's words, and a
#: list of files with secrets.
ALLOWED = (
    "dispatcher/platforms/local/",
    "dispatcher/platforms/ssh/",
    "dispatcher/ssh/",
    "dispatcher/remote_python/",
    "dispatcher/cli/hosts/",
    "dispatcher/cli/nfs/",
    "dispatcher/nni/",
    "dispatcher/code_archive/ignoring.py",
)
NAMES = re.compile(r"\bssh\b|\bssh_|SshService|LocalService|local_service|MachineConfig")


def product() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "dispatcher").rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text()


def test_nobody_else_knows_these_platforms() -> None:
    """Mutation: a check of the experiment file that asks for machines."""
    knowing = {path: NAMES.findall(text) for path, text in product() if NAMES.search(text)}
    assert not {path: names for path, names in knowing.items() if not path.startswith(ALLOWED)}


def test_no_kind_of_platform_is_asked_for() -> None:
    """But once in each half of the look-up, of whatever an entry point has named; and where the
    conformance suite chooses its tests."""
    sites = {path for path, text in product() for kind in kinds_asked_for(text) if kind}
    sites = {path for path in sites if not path.startswith("dispatcher/conformance/")}
    assert sites == {"dispatcher/experiment/plugged.py", "dispatcher/platforms/registry.py"}


def kinds_asked_for(text: str) -> Iterator[str]:
    """The classes of platforms that ``isinstance`` is called with."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            for name in ast.walk(node.args[1]):
                if isinstance(name, ast.Name) and name.id.endswith("Platform"):
                    yield name.id


def test_the_rule_for_kinds_bites() -> None:
    assert list(kinds_asked_for("if isinstance(x, (A, AgentPlatform)):\n    pass")) == [
        "AgentPlatform"
    ]


def test_an_object_is_not_asked_for_what_it_may_lack() -> None:
    """Members have defaults instead: ``hasattr`` finds no slip of the pen."""
    below = ("dispatcher/platforms/", "dispatcher/conformance/", "dispatcher/head/")
    assert not [path for path, text in product() if path.startswith(below) and "hasattr(" in text]


def loaded_after(*words: str) -> set[str]:
    """The modules that a Python has loaded when it ends."""
    tell = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    ran = subprocess.run(
        [sys.executable, "-c", tell + "\n".join(words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return set(ran.stderr.split())


def test_an_experiment_is_imported_without_any_platform() -> None:
    """They are looked up by name, when a value is read: else the two would import one another."""
    modules = loaded_after("import dispatcher.experiment")
    assert "dispatcher.experiment.all_keys" in modules
    assert not {each for each in modules if each.startswith("dispatcher.platforms")}


def test_a_file_loads_the_platforms_that_it_names() -> None:
    modules = loaded_after(
        "from dispatcher.experiment.plugged import platform_named", "platform_named('local')"
    )
    assert "dispatcher.platforms.local" in modules
    assert "dispatcher.platforms.ssh" not in modules
    assert "paramiko" not in modules


@pytest.mark.parametrize("words", ["--help", "run --help", "--version"])
def test_help_asks_nobody_for_entry_points(words: str) -> None:
    modules = loaded_after(
        "import sys",
        f"sys.argv = ['bequeath', *{words.split()!r}]",
        "from dispatcher.cli.main import main",
        "main()",
    )
    assert "dispatcher.cli.main" in modules
    assert not {each for each in modules if each.startswith("dispatcher.platforms")}
    assert "dispatcher.experiment" not in modules


def test_entry_points_are_those_of_this_checkout() -> None:
    """If not, it has to be installed again: ``pip install -e .``"""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    ours = {each.name: each.value for each in entry_points(group=GROUP)}
    assert {k: v for k, v in ours.items() if v.startswith("dispatcher.")} == table[GROUP]
