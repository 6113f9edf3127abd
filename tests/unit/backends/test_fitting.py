"""Bringing a machine what it lacks, with commands that run here in place of there."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import pytest

from dispatcher.backends.ssh import Machine
from dispatcher.backends.ssh.archive import Archives, pack_all
from dispatcher.backends.ssh.fitting import MODULES, USEFUL, Probed, fit, problem_with
from dispatcher.ssh import Ran, SshTarget


class Bare:
    """A machine on which only the prolog makes a Python to be found."""

    label = "bare"

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "programs"
        self.behind_prolog = folder / "behind"
        self.home = folder / "home"
        for path in (self.programs, self.behind_prolog, self.home):
            path.mkdir()
        bash = shutil.which("bash")
        assert bash is not None
        (self.programs / "bash").symlink_to(bash)
        python = self.behind_prolog / "its-python"
        python.write_text(f'#!{bash}\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        self.prolog = f"read -r eaten; echo welcome; export PATH={self.behind_prolog}:$PATH"

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | BinaryIO = b"",
        limit_s: float,
        environment: Mapping[str, str] | None = None,
    ) -> Ran:
        ran = subprocess.run(
            list(argv),
            input=stdin if isinstance(stdin, bytes) else stdin.read(),
            capture_output=True,
            timeout=limit_s,
            env={"PATH": str(self.programs), "HOME": str(self.home), **(environment or {})},
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def stat(self, path: str) -> None:
        return None


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    return Bare(tmp_path)


@pytest.fixture
def archives(tmp_path: Path) -> Archives:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("x = 1\n")
    return pack_all(
        tmp_path / "code", tmp_path / "packed", excluded=[], most_files=9, most_bytes=999
    )


def test_all_that_is_done_there_goes_behind_the_prolog(bare: Bare, archives: Archives) -> None:
    """Unpacking once called "python3", which such a machine may not have."""
    machine = Machine("bare", lambda: SshTarget("bare"), python="its-python", prolog=bare.prolog)
    fitted = fit(bare, machine, archives)  # type: ignore[arg-type]
    assert fitted.folder == str(bare.home / ".bequeath")
    assert os.listdir(fitted.code) == ["train.py"]
    assert os.path.isfile(f"{fitted.runtime}/trial_runtime/__init__.py")


def test_what_is_only_useful_is_said_and_no_reason_to_refuse(
    bare: Bare, archives: Archives, caplog: pytest.LogCaptureFixture
) -> None:
    (bare.home / "filelock.py").write_text("raise ImportError('not here')\n")
    prolog = f"{bare.prolog}; export PYTHONPATH={bare.home}"
    machine = Machine("bare", lambda: SshTarget("bare"), python="its-python", prolog=prolog)
    with caplog.at_level(logging.INFO, "bequeath.backends.ssh"):
        fit(bare, machine, archives)  # type: ignore[arg-type]
    assert "bare: no filelock: files of parents are read from the share" in caplog.text


def test_a_machine_without_what_is_useful_takes_trials() -> None:
    missing = dict.fromkeys(MODULES, "") | dict.fromkeys(USEFUL, "ModuleNotFoundError")
    found = Probed((3, 11, 2), "/usr/bin/python3", "/h/.bequeath", "", missing, [], [])
    assert problem_with(found, Machine("h1", lambda: SshTarget("h1"))) == ""
