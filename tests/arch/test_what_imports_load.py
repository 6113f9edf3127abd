"""What an import costs: what a process of its own has loaded after it."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import trial_runtime

ROOT = Path(__file__).parents[2]

#: Imports what is allowed first, with whatever that brings, then what is looked at.
_PROGRAM = """
import importlib, sys
allowed, names = sys.argv[1].split(), sys.argv[2].split()
for name in allowed:
    importlib.import_module(name)
before = set(sys.modules)
for name in names:
    importlib.import_module(name)
ours = {name.partition(".")[0] for name in names}
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(new - ours - sys.stdlib_module_names))
"""


def surplus(allowed: str, names: str) -> list[str]:
    """What importing ``names`` loads beyond themselves, the standard library and ``allowed``."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, allowed, names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def modules_of_trials() -> str:
    found = pkgutil.walk_packages(trial_runtime.__path__, "trial_runtime.")
    return " ".join(module.name for module in found if not module.name.endswith("__main__"))


def test_every_module_of_the_trial_runtime_is_cheap() -> None:
    assert "trial_runtime.agent.runners.worker" in modules_of_trials()
    assert surplus("msgspec zmq", modules_of_trials()) == []


@pytest.mark.parametrize(
    "name", ["bequeath", "trial_runtime", "trial_runtime.weights", "nfs_setup"]
)
def test_packages_that_load_nothing_before_they_are_used(name: str) -> None:
    assert surplus("", name) == []


def test_a_tuners_base_class_brings_no_library() -> None:
    assert surplus("", "trial_runtime.errors") == []  # the base of all errors
    assert surplus("trial_runtime.errors", "tuners tuners.base tuners.errors") == []


def test_the_dispatcher_is_empty_before_it_is_used() -> None:
    plain = "trial_runtime.facts trial_runtime.errors"
    assert surplus("", plain) == []
    assert surplus(plain, "dispatcher dispatcher.errors dispatcher.core") == []


def test_a_file_is_read_without_what_runs_it() -> None:
    """Each ``validate`` and each editor that asks for the schema loads these; an experiment in
    Python has no YAML."""
    loaded = surplus("", "dispatcher.experiment.loader dispatcher.platforms.local")
    assert not {"zmq", "ruamel"} & {*loaded}


#: Runs a line, then prints which of some modules are loaded.
_LOADED = "import sys; exec(sys.argv[1]); print(*[n for n in sys.argv[2:] if n in sys.modules])"


def loaded_by(code: str, *names: str, env: dict[str, str] | None = None) -> str:
    """Which of these modules a process has loaded after some code, in one line."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, code, *names],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_a_first_search_waits_for_nothing_that_it_does_not_use() -> None:
    """Mutation: a room's package imports all of its modules again."""
    unused = (
        "sqlalchemy", "alembic", "zmq", "ruamel.yaml", "filelock", "dispatcher.code_archive",
        "dispatcher.nni", "dispatcher.queries.lives", "dispatcher.tuner_host.driver",
        "dispatcher.weight_keeper.keeper", "dispatcher.store.verify",
    )  # fmt: skip
    assert loaded_by("import dispatcher.study", *unused) == ""


def test_a_command_converts_words_without_pydantic(tmp_path: Path) -> None:
    """Mutation: each command waits for pydantic."""
    code = "from dispatcher.cli.main import root; root().main({}, standalone_mode=False)"
    words = ["experiment", "list", "--all"]
    env = {"BEQUEATH_HOME": str(tmp_path), "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    for asked in (words, ["trial", "ls", "-h"]):
        assert loaded_by(code.format(asked), "pydantic", "ruamel.yaml", env=env) == ""


@pytest.mark.parametrize(
    "room",
    [
        "dispatcher.experiment",
        "dispatcher.queries",
        "dispatcher.tuner_host",
        "dispatcher.weight_keeper",
    ],
)
def test_what_a_room_fetches_late_is_there(room: str) -> None:
    """Mutation: a table of late names forgets one, or a module gets the name of a function beside
    it, which then hides the function as soon as the module is loaded."""
    package = importlib.import_module(room)
    assert all(hasattr(package, name) for name in package.__all__)
    late = vars(package)["_HOMES"]
    assert not {*late} & {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert all(
        getattr(package, name) is getattr(importlib.import_module(f"{room}.{home}"), name)
        for name, home in late.items()
    )


def test_a_sinks_process_loads_its_own_section_of_the_file() -> None:
    """A head starts it beside each experiment. Mutation: half a second of the processor for the
    keys of whole files."""
    code = "import dispatcher.experiments.sinks, dispatcher.sinks.tensorboard as _"
    assert loaded_by(code, "dispatcher.experiment.config") == ""


def test_a_command_that_reads_loads_no_configuration() -> None:
    """``trial ls``, ``status``, ``best``: a third of a second that none of them needs. Mutation: a
    module that an answer's type lies in imports what makes it."""
    loaded = "import sys, dispatcher.operations.table, dispatcher.operations.trials as _\n"
    loaded += (
        "print(*sorted(n for n in sys.modules if n.split('.')[:2] == ['dispatcher', 'experiment']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_the_look_bites() -> None:
    assert "msgspec" in surplus("", "dispatcher.codec")


def test_what_lists_trials_loads_no_core() -> None:
    """Mutation: `bequeath trial ls` waits for the machine that decides about trials."""
    names = (
        "dispatcher.queries dispatcher.cli.trial.verbs dispatcher.operations.table "
        "dispatcher.operations.trials"
    )
    code = f"import importlib, sys; [importlib.import_module(n) for n in {names.split()!r}]; "
    code += "print('dispatcher.core' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
