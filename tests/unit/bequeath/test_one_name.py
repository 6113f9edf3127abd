"""``import bequeath as bq``: what it has, what it loads, and who may bear our packages' names."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import bequeath

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


def test_what_types_are_checked_by_is_what_is_there() -> None:
    """Mutation: a name that only the checker of types knows, or only Python."""
    tree = ast.parse((ROOT / "bequeath" / "__init__.py").read_text())
    typed = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    names = {name.asname for each in typed for name in each.names if name.asname}
    assert names == set(bequeath.__all__) <= set(dir(bequeath))


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


@pytest.mark.parametrize("before", [True, False])
def test_a_users_own_files_stay_his(run: Run, tmp_path: Path, before: bool) -> None:
    """Mutation: the user's file is hidden, or ours cannot be loaded, in either order."""
    for name in PACKAGES:
        (tmp_path / f"{name}.py").write_text(f"import bequeath as bq\nMINE = {name!r}\n")
    (tmp_path / "tuners.py").write_text(
        "import bequeath as bq\n\nclass Mine(bq.Tuner):\n    pass\n"
    )
    theirs = "import dispatcher, trial_runtime, tuners\nfrom tuners import Mine\n"
    ours = "import bequeath as bq\nuse = bq.Experiment, bq.Tuner, bq.get_parameters()\n"
    done = run(
        (theirs + ours if before else ours + theirs) + "import pickle\n"
        "assert issubclass(Mine, bq.Tuner)\n"
        "assert pickle.loads(pickle.dumps(Mine)) is Mine\n"
        "print(dispatcher.MINE, trial_runtime.MINE)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "dispatcher trial_runtime\n"


def test_a_users_own_package_keeps_its_modules(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "tuners"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .mine import Mine\n")
    (folder / "mine.py").write_text("import bequeath as bq\n\nclass Mine(bq.Tuner):\n    pass\n")
    done = run(
        "import bequeath as bq\nbq.Tuner\nfrom tuners import Mine, mine\nprint(mine.Mine is Mine)"
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize(
    "file, text, error",
    [
        ("trial_runtime.py", "X = 1\ndef log(): ...\n", "trial_runtime.py:2: 'log' is also a name"),
        ("tuners/base.py", "", "tuners/base.py takes the place of a module of bequeath's"),
    ],
)
def test_a_name_that_both_define_is_refused(
    run: Run, tmp_path: Path, file: str, text: str, error: str
) -> None:
    """Mutation: the script gets our ``log`` for its own without a word."""
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    if "/" in file:
        (tmp_path / file).with_name("__init__.py").touch()
    done = run("import bequeath as bq\nbq.Experiment")
    assert done.returncode == 1
    assert error in done.stderr.splitlines()[-1]
    assert "rename" in done.stderr.splitlines()[-1]


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
    for file in (ROOT / "bequeath").glob("*.py"):
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
