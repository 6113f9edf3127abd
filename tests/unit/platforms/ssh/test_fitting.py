"""Bringing a machine what it lacks, with commands that run here in place of there."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from dispatcher.platforms.archives import Archives, pack_all
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.platforms.ssh.provisioning import KEPT, fit
from dispatcher.ssh import Ran, SshTarget
from dispatcher.wheelhouse import WheelCache
from dispatcher.wheelhouse.pip import PipFailed
from trial_runtime.agent.config import AgentConfig, TrialSpec, encode_config
from trial_runtime.agent.processes.record import config_path
from trial_runtime.endpoint import Endpoint


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
        most_bytes: int = 1 << 20,
        environment: Mapping[str, str] | None = None,
    ) -> Ran:
        ran = subprocess.run(
            list(argv),
            input=stdin if isinstance(stdin, bytes) else stdin.read(),
            capture_output=True,
            timeout=max(limit_s, 240.0),  # what takes long here says nothing of there
            env={"PATH": str(self.programs), "HOME": str(self.home), **(environment or {})},
        )
        return Ran(ran.returncode, ran.stdout[:most_bytes], ran.stderr)


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    return Bare(tmp_path)


@pytest.fixture
def archives(tmp_path: Path) -> Archives:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("x = 1\n")
    packed = pack_all(
        tmp_path / "code", tmp_path / "packed", excluded=[], most_files=9, most_bytes=999
    )
    return replace(packed, wheels=WheelCache(tmp_path / "wheels", fetch=no_pip))


def no_pip(*_: object) -> None:
    raise PipFailed("no way out")


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


@pytest.mark.parametrize("last, said", [("module load cuda", True), ("module load cuda; :", False)])
def test_a_prolog_that_ends_badly_is_told_and_stops_nothing(
    bare: Bare, archives: Archives, caplog: pytest.LogCaptureFixture, last: str, said: bool
) -> None:
    """Mutations: nobody hears of it; what it exports is lost."""
    machine = replace(machine_of(bare), prolog=f"{bare.prolog}; {last}")
    with caplog.at_level(logging.WARNING, "bequeath.backends.ssh"):
        fit(bare, machine, archives)  # type: ignore[arg-type]
    found = "bare: its prolog ended with exit code 127: " in caplog.text
    assert (found and "module" in caplog.text) is said


def digest(number: int) -> str:
    return f"{number:064x}"


def brought(bare: Bare, archives: Archives) -> list[int]:
    """What is left of trees 1 to 20, the first used longest ago, when others are brought."""
    fitted = fit(bare, machine_of(bare), archives)  # type: ignore[arg-type]
    assert os.path.isdir(fitted.code)
    assert os.path.isdir(fitted.runtime)
    left = [set(os.listdir(bare.home / ".bequeath" / kind)) for kind in ("code", "runtime")]
    assert not [name for names in left for name in names if name.startswith(".")]
    assert left[0] - {os.path.basename(fitted.code)} == left[1] - {os.path.basename(fitted.runtime)}
    return [number for number in range(1, 21) if digest(number) in left[0]]


def machine_of(bare: Bare) -> Machine:
    return Machine("bare", lambda: SshTarget("bare"), python="its-python", prolog=bare.prolog)


@pytest.fixture
def old_trees(bare: Bare) -> Path:
    work = bare.home / ".bequeath"
    for kind in ("code", "runtime"):
        for number in range(1, 21):
            tree = work / kind / digest(number)
            (tree / "trial_runtime" / "deep").mkdir(parents=True)
            used_at = time.time() - 1000 + number
            os.utime(tree, (used_at, used_at))
    return work


def test_of_what_was_brought_before_those_used_last_stay(
    bare: Bare, archives: Archives, old_trees: Path
) -> None:
    (old_trees / "code" / "notes").mkdir()
    (old_trees / "code" / f".gone-{digest(77)}").mkdir()  # half removed, by who died
    kept = list(range(21 - (KEPT - 1), 21))
    names = set(os.listdir(old_trees / "code"))
    (old_trees / "runtime" / "notes").mkdir()
    assert brought(bare, archives) == kept
    assert "notes" in names & set(os.listdir(old_trees / "code"))


def test_nothing_is_removed_where_nothing_was_brought(
    bare: Bare, archives: Archives, old_trees: Path
) -> None:
    fit(bare, machine_of(bare), archives)  # type: ignore[arg-type]
    again = old_trees / "code" / digest(1)
    again.mkdir()
    os.utime(again, (1, 1))
    found = fit(bare, machine_of(bare), archives)  # type: ignore[arg-type]
    assert again.is_dir()
    for used in (found.code, found.runtime):
        assert time.time() - os.stat(used).st_mtime < 3600


def test_a_tree_that_is_used_again_counts_as_new(
    bare: Bare, archives: Archives, old_trees: Path
) -> None:
    fitted = fit(bare, machine_of(bare), archives)  # type: ignore[arg-type]
    os.utime(fitted.code, (1, 1))
    fit(bare, machine_of(bare), archives)  # type: ignore[arg-type]
    assert os.stat(fitted.code).st_mtime > 1


def configuration(old_trees: Path, experiment: str, **keys: str) -> None:
    folder = old_trees / "experiments" / experiment / "gpu1"
    folder.mkdir(parents=True)
    config = AgentConfig(
        worker="gpu1",
        slots=1,
        head=Endpoint("tcp://127.0.0.1:1"),
        epoch=1,
        run_folder="/run",
        experiment_folder=str(folder),
        trial=TrialSpec(str(old_trees / "code" / digest(2))),
        weights_root="/w",
        **keys,  # type: ignore[arg-type]
    )
    config_path(folder, "gpu1").write_bytes(encode_config(config))


def test_what_an_experiment_names_stays(bare: Bare, archives: Archives, old_trees: Path) -> None:
    """Also that of an agent on another machine, with the same home."""
    configuration(old_trees, "lab", runtime=str(old_trees / "runtime" / digest(2)))
    assert brought(bare, archives) == [2, *range(21 - (KEPT - 1), 21)]


@pytest.mark.parametrize("how", ["older", "damaged"])
def test_nothing_is_removed_while_it_cannot_be_known_who_uses_it(
    bare: Bare, archives: Archives, old_trees: Path, how: str
) -> None:
    configuration(old_trees, "lab")  # of a version that did not name its runtime
    if how == "damaged":
        (path,) = old_trees.glob("experiments/lab/gpu1/agent-*.config.json")
        path.write_text("{")
    assert brought(bare, archives) == list(range(1, 21))


def test_what_a_process_uses_stays(bare: Bare, archives: Archives, old_trees: Path) -> None:
    """An agent lives on with the runtime it was started with, whatever its file names now."""
    sleeper = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    variables = {"PYTHONPATH": f"/x:{old_trees}/runtime/{digest(3)}"}
    at = old_trees / "code" / digest(3)
    with subprocess.Popen(sleeper, stdin=subprocess.PIPE, env=variables, cwd=at) as process:
        try:
            assert brought(bare, archives) == [3, *range(21 - (KEPT - 1), 21)]
        finally:
            process.kill()
