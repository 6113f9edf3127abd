"""What knows NNI can be left out: nobody else in the dispatcher names it, nor needs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from dispatcher.experiment.dialects import GROUP
from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]

#: Outside its room NNI is a name only here. Of experiments: the value of a key and what follows
#: from it. Of agents: a field that agents of 0.1.0 read. Of tuner hosts: one that heads of 0.1.0
#: write. Others: commands and an option of that name, packages whose classes are known, built-in
#: tuners of that name, files that are not sent with code.
NAMED = {
    "dispatcher/cli/commands.py",
    "dispatcher/cli/web.py",
    "dispatcher/code_archive/ignoring.py",
    "dispatcher/core/asking.py",
    "dispatcher/experiment/programs.py",
    "dispatcher/wiring/programs.py",
    "dispatcher/core/why.py",
    "dispatcher/experiment/config.py",
    "dispatcher/experiment/all_keys.py",
    "dispatcher/experiment/builtin_names.py",
    "dispatcher/experiment/python_source.py",
    "dispatcher/platforms/agents/message_check.py",
    "dispatcher/platforms/services/threaded.py",
    "dispatcher/tuner_host/config.py",
    "dispatcher/wiring/agents.py",
    "dispatcher/wiring/settings.py",
    "dispatcher/wiring/tuner_host.py",
}
_NAME = re.compile(r"(?i)(^|_)nnis?(_|$)|Nni(?!n)")

PLAIN = """\
trialCommand: {python} -c "import trial_runtime; trial_runtime.report_final_result(0.5)"
trialConcurrency: 1
maxTrialNumber: 2
tuner: {{name: Random}}
searchSpace: {{x: {{_type: choice, _value: [1, 2]}}}}
"""


def names_of_nni(text: str) -> Iterator[str]:
    """Identifiers, modules and one-word texts of a program that name NNI."""
    for node in nodes_of(text):
        for kind in ("id", "attr", "arg", "name", "module", "value"):
            name = getattr(node, kind, None)
            if isinstance(name, str) and not re.search(r"\s", name):
                yield from (part for part in re.split(r"\W", name) if _NAME.search(part))


def test_the_rule_for_names_bites() -> None:
    text = (
        "from dispatcher.nni import a\nfor_nni = 'nni'\nrunning = 'NNI is a word of a sentence'\n"
    )
    assert list(names_of_nni(text)) == ["nni", "for_nni", "nni"]


def test_nni_is_named_in_its_room_and_where_a_file_says_it() -> None:
    """Mutation: a check of the experiment file that asks for tuners of NNI's."""
    named = {
        name
        for path in (ROOT / "dispatcher").rglob("*.py")
        if any(names_of_nni(path.read_text()))
        and not (name := str(path.relative_to(ROOT))).startswith("dispatcher/nni/")
    }
    assert named == NAMED


def test_entry_points_are_those_of_this_checkout() -> None:
    """If not, it has to be installed again: ``pip install -e .``"""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    ours = {each.name: each.value for each in entry_points(group=GROUP)}
    assert {k: v for k, v in ours.items() if v.startswith("dispatcher.")} == table[GROUP]


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the room is deleted, for this process's children and theirs."""
    checkout = tmp_path_factory.mktemp("without")
    (checkout / "dispatcher").mkdir()
    for package in ("trial_runtime", "tuners", "nfs_setup"):
        (checkout / package).symlink_to(ROOT / package)
    for part in (ROOT / "dispatcher").iterdir():
        if part.name not in ("nni", "__pycache__"):
            (checkout / "dispatcher" / part.name).symlink_to(part)
    return checkout


def ran(checkout: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def bequeath(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ran(checkout, "from dispatcher.cli.main import main; main()", *arguments)


def test_all_else_is_imported_without_it(without: Path) -> None:
    """Mutation: an import of ``dispatcher.nni``, even a late one that import-linter allows."""
    modules = [
        ".".join(path.relative_to(without).with_suffix("").parts)
        for folder in (without / "dispatcher").iterdir()
        for path in ([folder] if folder.is_file() else folder.rglob("*.py"))
        if path.suffix == ".py"
        and not path.name.startswith(("__", "test_"))
        and "migrations" not in path.parts  # alembic runs these itself
    ]
    assert len(modules) > 300
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n    importlib.import_module(name)\n"
        "print(sys.modules['dispatcher.errors'].__file__)\n"
        "assert importlib.util.find_spec('dispatcher.nni') is None\n"
    )
    done = ran(without, program, *modules)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(without), "it is not this checkout that ran"


def test_help_does_not_list_its_commands(without: Path) -> None:
    there, gone = bequeath(ROOT, "--help"), bequeath(without, "--help")
    assert gone.returncode == 0
    assert "nnictl" in there.stdout
    assert "nnictl" not in gone.stdout


def test_a_plain_experiment_runs_without_it(without: Path, tmp_path: Path) -> None:
    (tmp_path / "plain.yaml").write_text(PLAIN.format(python=sys.executable))
    done = bequeath(without, "run", str(tmp_path / "plain.yaml"))
    assert done.returncode == 0, done.stderr
    assert "0.5" in done.stdout
    assert not re.search(r"(?i)\bnni\b|dialect", done.stdout + done.stderr), "no word of it"


def test_what_needs_it_is_refused_in_a_sentence(without: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs.yaml").write_text(
        PLAIN.format(python=sys.executable) + "compatibility: nni\n"
    )
    refused = bequeath(without, "validate", str(tmp_path / "theirs.yaml"))
    assert refused.returncode == 3
    assert "theirs.yaml:6:" in refused.stderr + refused.stdout
    assert "has no part that knows it" in refused.stderr + refused.stdout
    (tmp_path / "script.py").write_text("import nni\n")
    refused = bequeath(without, "run", str(tmp_path / "script.py"))
    assert refused.returncode != 0
    assert "scripts cannot be run" in refused.stderr
    assert "Traceback" not in refused.stderr
