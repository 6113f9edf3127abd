"""``import bequeath as bq``: what it has, what it loads, and who may bear our packages' names."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import bequeath
from bequeath.names import HOMES
from dispatcher.errors import UserError
from dispatcher.experiments.processes import child_environment

ROOT = Path(__file__).parents[3]
PACKAGES = ("dispatcher", "trial_runtime", "tuners")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a program in a folder of its own, which is first on its path, ours coming after."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(program: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "script.py").write_text(program)
        return subprocess.run(
            [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )

    return run


@pytest.mark.parametrize("package", PACKAGES)
def test_each_public_name_of_a_package_is_there(package: str) -> None:
    """Mutation: a tuner is added to ``tuners`` and forgotten here."""
    module = import_module(package)
    for name in module.__all__:
        assert getattr(bequeath, name) is getattr(module, name)


def test_one_name_catches_all_that_is_raised_on_purpose() -> None:
    """Mutation: the base of one package's errors is not that of all."""
    from trial_runtime.api_errors import InvalidMetric

    errors = [getattr(bequeath, name) for name in HOMES]
    errors = [one for one in errors if isinstance(one, type) and issubclass(one, Exception)]
    assert len(errors) > 10
    for each in (*errors, InvalidMetric, UserError):
        assert issubclass(each, bequeath.BequeathError), each


def test_what_types_are_checked_by_is_what_is_there() -> None:
    """Mutation: a name that only the checker of types knows, or only Python."""
    tree = ast.parse((ROOT / "bequeath" / "__init__.py").read_text())
    typed = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    names = {name.asname for each in typed for name in each.names if name.asname}
    assert names == set(HOMES) <= set(dir(bequeath))
    assert set(bequeath.__all__) == names - {"int"}, "a star does not hide Python's own"


@pytest.mark.parametrize(
    "use, absent",
    [
        ("pass", "ast dispatcher trial_runtime tuners msgspec numpy"),
        ("bq.get_parameters; bq.load_weights; bq.morphism", "dispatcher tuners numpy torch"),
        ("bq.Tuner; bq.ParentFailed", "dispatcher numpy zmq pydantic"),
    ],
)
def test_a_use_loads_what_it_needs(run: Run, use: str, absent: str) -> None:
    """Mutation: ``import bequeath`` in a trial imports the dispatcher."""
    done = run(
        f"import sys\nbefore = set(sys.modules)\nimport bequeath as bq\n{use}\n"
        "print(*(set(sys.modules) - before))"
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & set(absent.split()) == set()
    assert "bequeath" in done.stdout


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'load_weight'; did you mean 'load_w"):
        bequeath.load_weight  # noqa: B018


#: A user's own module of each name, with names that ours have, too.
THEIRS = {
    "dispatcher": "import bequeath as bq\nMINE = 'dispatcher'\n\ndef queries(): return 'theirs'\n",
    "trial_runtime": "MINE = 'trial_runtime'\n\ndef log(*words): return 'theirs'\n",
    "tuners": """\
import random

import bequeath as bq

space = {"x": 1}


class RandomTuner(bq.Tuner):
    pass


def shuffled():
    return random.sample([1, 2, 3], 3)
""",
}
IMPORT_THEIRS = """
import dispatcher, trial_runtime, tuners
from dispatcher import queries
from trial_runtime import log
from tuners import RandomTuner, space
"""
IMPORT_OURS = """
import bequeath as bq
use = bq.Experiment, bq.Tuner, bq.get_parameters(), bq.GridSearchTuner, bq.space
"""
EACH_IS_WHAT_ITS_USER_MEANS = """
import inspect, pickle
import tuners.random, tuners.values
assert (dispatcher.MINE, trial_runtime.MINE) == ("dispatcher", "trial_runtime")
assert (queries(), log()) == ("theirs", "theirs"), "what both define is the user's to the user"
assert space == tuners.space == {"x": 1}
assert len(tuners.shuffled()) == 3, "a module of ours is in his module's place for it"
assert bq.RandomTuner is not RandomTuner and issubclass(RandomTuner, bq.Tuner)
assert bq.space.__module__ == "tuners.space.parameters"
assert tuners.NoMoreTrialError is bq.NoMoreTrialError, "what he lacks is ours"
assert pickle.loads(pickle.dumps(RandomTuner)) is RandomTuner
assert inspect.getsource(RandomTuner).startswith("class RandomTuner(bq.Tuner)")
assert {"shuffled", "Tuner"} <= set(dir(tuners))
tuners.space = 5
assert tuners.space == 5 and bq.Tuner.wait_for
names = {}
exec("from tuners import *", names)
assert names["RandomTuner"] is RandomTuner and "PBTTuner" not in names
print("done")
"""


@pytest.mark.parametrize("order", ["theirs first", "ours first"])
def test_a_users_own_files_stay_his(run: Run, tmp_path: Path, order: str) -> None:
    """Mutation: the user's file is hidden, or ours cannot be loaded, in either order; or each gets
    the other's where both define a name."""
    for name, text in THEIRS.items():
        (tmp_path / f"{name}.py").write_text(text)
    both = [IMPORT_THEIRS, IMPORT_OURS]
    imports = "".join(both if order == "theirs first" else reversed(both))
    done = run(imports + EACH_IS_WHAT_ITS_USER_MEANS)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_users_file_that_nobody_imports_does_not_run(run: Run, tmp_path: Path) -> None:
    """Mutation: it runs when ours is loaded, or when a tool looks at all modules."""
    (tmp_path / "tuners.py").write_text("raise RuntimeError('it has run')\n")
    done = run(
        "import inspect, sys, dispatcher\nimport bequeath as bq\nbq.Tuner\n"
        "for each in list(sys.modules.values()):\n"
        "    getattr(each, '__file__', None), getattr(each, '__warningregistry__', None)\n"
        "try:\n    import tuners; tuners.Mine\nexcept RuntimeError as error:\n    print(error)\n"
    )
    assert (done.returncode, done.stdout) == (0, "it has run\n"), done.stderr


def test_a_users_own_package_keeps_its_modules(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "tuners"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .mine import Mine\n")
    (folder / "mine.py").write_text("import bequeath as bq\n\nclass Mine(bq.Tuner):\n    pass\n")
    done = run(
        "import bequeath as bq\nbq.Tuner\nfrom tuners import Mine, mine\nprint(mine.Mine is Mine)"
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_users_package_with_a_module_of_ours_is_refused(run: Run, tmp_path: Path) -> None:
    """Mutation: an import deep in ours gets the user's module."""
    (tmp_path / "tuners").mkdir()
    for name in ("__init__.py", "base.py"):
        (tmp_path / "tuners" / name).touch()
    done = run("import bequeath as bq\nbq.Experiment")
    last = done.stderr.splitlines()[-1]
    assert "tuners/base.py takes the place of a module of bequeath's package 'tuners'" in last
    assert f"rename {tmp_path / 'tuners'}" in last


def test_where_only_trials_run_it_has_what_trials_use(tmp_path: Path) -> None:
    """Mutation: a machine that has nothing but the runtime of trials has no ``bequeath``."""
    (tmp_path / "trial_runtime").symlink_to(ROOT / "trial_runtime")
    done = subprocess.run(
        [sys.executable, "-c", "import bequeath as bq\nprint(bq.log.__module__)\n"
         "bq.morphism\nbq.Tuner"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={"PYTHONPATH": str(tmp_path / "trial_runtime" / "beside")},
    )  # fmt: skip
    assert done.stdout == "trial_runtime.api\n", done.stderr
    assert "no attribute 'Tuner' here: this machine has only what" in done.stderr.splitlines()[-1]


def test_a_path_that_hides_ours_from_every_process_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a head dies of a user's module that it takes for ours."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "tuners.py").touch()
    assert child_environment()["PYTHONPATH"] == f"{tmp_path}{os.pathsep}{ROOT}"
    (tmp_path / "dispatcher.py").touch()
    with pytest.raises(UserError, match=r"PYTHONPATH has .*'dispatcher' takes the place"):
        child_environment()


@pytest.mark.parametrize("use", ["script", "command"])
@pytest.mark.parametrize("package", PACKAGES)
def test_another_distribution_that_has_overwritten_ours_is_named(
    tmp_path: Path, package: str, use: str
) -> None:
    """Mutation: pip has replaced one of our files, and an import deep in ours fails."""
    site = tmp_path / "site"
    site.mkdir()
    for name in ("bequeath", *PACKAGES):
        if name != package:
            (site / name).symlink_to(ROOT / name)
    (site / package).mkdir()
    (site / package / "__init__.py").write_text("def tune(): ...\n")
    (site / "bequeath").unlink()
    (site / "bequeath").mkdir()
    for file in (ROOT / "bequeath").glob("*.py"):  # no link, which leads to where ours are whole
        (site / "bequeath" / file.name).write_text(file.read_text())
    info = site / "othertuners-0.57.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: othertuners\nVersion: 0.57\n")
    (info / "RECORD").write_text(f"{package}/__init__.py,,\n")
    name = {"dispatcher": "Experiment", "tuners": "Tuner", "trial_runtime": "log"}[package]
    program = (
        ["-m", "bequeath", "--version"]
        if use == "command"
        else ["-c", f"import bequeath as bq; bq.{name}"]
    )
    done = subprocess.run(
        [sys.executable, "-S", *program],
        cwd=site, capture_output=True, text=True, timeout=120,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"{package} is bequeath's, and the distribution 'othertuners 0.57' has ove" in last
    assert "pip uninstall othertuners" in last


def test_python_m_bequeath_is_the_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tuners.py").write_text("MINE = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "bequeath", "--version"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"bequeath {bequeath.__version__}\n"), done.stderr
