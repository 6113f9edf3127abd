"""Every command is listed, loads, and explains itself; listing them imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from dispatcher.cli.commands import ROOT
from dispatcher.cli.lazy_group import CommandEntry, load
from tests.unit.cli.conftest import Shell


def _commands() -> Iterator[tuple[tuple[str, ...], CommandEntry]]:
    for name, entry in ROOT.items():
        yield (name,), entry
        for inner, below in getattr(load(name, entry), "table", {}).items():
            yield (name, inner), below


ALL = list(_commands())


def test_help_lists_all_commands(bequeath: Shell) -> None:
    text = bequeath("--help").out
    for name, entry in ROOT.items():
        assert f"  {name} " in text
        assert entry.help.split()[0] in text


def test_help_imports_neither_pydantic_nor_rich_nor_any_room() -> None:
    """What keeps it below 0.3 s; a clock would only say so on this machine."""
    heavy = (
        "pydantic rich zmq numpy sqlalchemy msgspec dispatcher.experiment dispatcher.queries "
        "dispatcher.operations"
    )
    program = (
        "import sys\n"
        "from dispatcher.cli.main import main\n"
        "sys.argv = ['bequeath', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
        f"found = [name for name in {heavy.split()} if name in sys.modules]\n"
        "sys.exit(f'imported: {found}' if found or code else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path,entry", ALL, ids=[" ".join(path) for path, _ in ALL])
def test_each_command_explains_itself(
    path: tuple[str, ...], entry: CommandEntry, bequeath: Shell
) -> None:
    said = bequeath(*path, "--help")
    assert said.code == 0
    assert said.out.startswith(f"Usage: bequeath {' '.join(path)} ")
    assert "{" not in said.out.splitlines()[0]
    assert entry.help.endswith(".")
    command = load(path[-1], entry)
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{path}: {parameter.name} says nothing"
        assert getattr(parameter, "is_flag", False) or parameter.metavar, (
            f"{path}: {parameter.name}"
        )


def test_a_slip_is_met_with_the_nearest_command(bequeath: Shell) -> None:
    said = bequeath("trail")
    assert said.code == 2
    assert "'trial'" in said.err


def test_version_is_the_packages(bequeath: Shell) -> None:
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert bequeath("--version").out == f"bequeath {project['project']['version']}\n"


def test_completion_offers_commands() -> None:
    import os

    done = subprocess.run(
        [sys.executable, "-c", "from dispatcher.cli.main import main; main()"],
        env={
            **os.environ,
            "_BEQUEATH_COMPLETE": "complete_bash",
            "COMP_WORDS": "bequeath trial s",
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["show", "shell", "submit", "star"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_us_back(shell: str, bequeath: Shell) -> None:
    assert f"_BEQUEATH_COMPLETE=complete_{shell}" in bequeath("completion", shell).out
