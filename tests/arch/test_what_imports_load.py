"""What an import costs: what a process of its own has loaded after it."""

from __future__ import annotations

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
    """Each ``validate`` and each editor that asks for the schema loads these."""
    assert "zmq" not in surplus("", "dispatcher.experiment.loader dispatcher.platforms.local")


def test_a_sinks_process_loads_its_own_section_of_the_file() -> None:
    """A head starts it beside each experiment. Mutation: half a second of the processor for the
    keys of whole files."""
    code = "import sys, dispatcher.experiments.sinks, dispatcher.sinks.tensorboard as _\n"
    code += "print('dispatcher.experiment.config' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


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
