"""The built wheel, as somebody has it who installs it: in an environment of its own.

The packages that ours needs are borrowed from the environment that runs the tests, by its folders.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import bequeath
from tests.support.processes import left_of

ROOT = Path(__file__).parents[2]

#: Runs anywhere but in the checkout. Prints what is not in the environment's own folder.
LOOKS_AT_ALL = """\
import importlib, importlib.metadata, pathlib, sys
import bequeath as bq
for name in bq.__all__:
    getattr(bq, name)
for name in ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners"):
    file = pathlib.Path(importlib.import_module(name).__file__)
    assert file.is_relative_to(sys.prefix), file
    assert (file.parent / "py.typed").is_file(), name
described = importlib.metadata.metadata("bequeath")
assert "Typing :: Typed" in described.get_all("Classifier")
"""


class Environment:
    """A virtual environment with the wheel in it."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.wheel = wheel
        self.python = folder / "bin" / "python"
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        (self.packages / "borrowed.pth").write_text("\n".join(_borrowed()) + "\n")
        self.pip("install", str(wheel))

    @property
    def packages(self) -> Path:
        """The folder that packages are installed in."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "lib" / version / "site-packages"

    def pip(self, verb: str, *arguments: str) -> None:
        """Install or uninstall here, without the network."""
        offline = ["--no-index", "--no-deps"] if verb == "install" else ["--yes"]
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "-q"]
        _run([*command, "--disable-pip-version-check", verb, *offline, *arguments])

    def start(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment to its end."""
        return subprocess.run(
            [str(self.folder / "bin" / words[0]), *words[1:]],
            cwd=cwd, env=_plain(), capture_output=True, text=True, timeout=240,
        )  # fmt: skip


def _borrowed() -> list[str]:
    """The folders of the packages that this process uses."""
    ends = (f"{os.sep}site-packages", f"{os.sep}dist-packages")
    places = [*sys.path, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return list(dict.fromkeys(each for each in places if each.endswith(ends)))


def _plain() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=_plain())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with nothing but the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=240,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1577836800"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return Environment(folder / "environment", next(folder.glob("*.whl")))


def test_all_public_names_are_in_the_wheel(installed: Environment, tmp_path: Path) -> None:
    """Mutation: a package or its mark of types is left out of the wheel."""
    done = installed.start("python", "-c", LOOKS_AT_ALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (("bequeath", "--version"), ("python", "-m", "bequeath", "--version")):
        done = installed.start(*words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, f"bequeath {bequeath.__version__}\n"), words


def test_an_experiment_runs_beside_files_of_our_names(
    installed: Environment, tmp_path: Path
) -> None:
    """Mutation: a process finds a user's file, or the checkout, where it needs the wheel's."""
    example = ROOT / "examples" / "hello"
    for name in ("experiment.yml", "trial.py", "tuner.py"):
        (tmp_path / name).write_text((example / name).read_text())
    for name in ("dispatcher", "trial_runtime", "tuners"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('nobody wants this')\n")
    done = installed.start("python", "-m", "bequeath", "run", "experiment.yml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert left_of(tmp_path) == []


def test_a_distribution_that_overwrites_a_package_is_named(
    installed: Environment, tmp_path: Path
) -> None:
    """Mutation: the answer is an error deep in ours, or the cure that it names is none."""
    title = "tuners-0.57.dist-info"
    with zipfile.ZipFile(tmp_path / "tuners-0.57-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tuners/__init__.py", "def tune(): ...\n")
        wheel.writestr(f"{title}/METADATA", "Metadata-Version: 2.1\nName: tuners\nVersion: 0.57\n")
        wheel.writestr(
            f"{title}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{title}/RECORD", f"tuners/__init__.py,,\n{title}/RECORD,,\n")
    installed.pip("install", str(wheel.filename))
    for words in (
        ("bequeath", "--version"),
        ("python", "-c", "import bequeath as bq; bq.Experiment"),
    ):
        done = installed.start(*words, cwd=tmp_path)
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1
        assert "is bequeath's, and the distribution 'tuners 0.57' has overwritten it" in last
        assert "pip uninstall tuners; then: pip install --force-reinstall --no-deps" in last
    installed.pip("uninstall", "tuners")
    done = installed.start("bequeath", "--version", cwd=tmp_path)
    assert "another package has overwritten it; run: pip install --force-reinstall" in done.stderr
    installed.pip("install", "--force-reinstall", str(installed.wheel))
    assert installed.start("bequeath", "--version", cwd=tmp_path).returncode == 0
