"""A shell on the node of a worker's job, over a scripted Slurm and an srun that runs here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.platforms.allocations.allocation import allocation_name, service_label
from dispatcher.platforms.allocations.incarnation import Incarnation, write_incarnation
from dispatcher.platforms.given import Given
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from dispatcher.platforms.slurm.shell import FilesInJobs
from tests.support.workers import agent_config
from tests.unit.platforms.slurm.scripted_slurm import Row, ScriptedSlurm

WORKER = "slurm-2"


class Scene:
    """A worker whose third job is there, and an srun."""

    def __init__(self, folder: Path) -> None:
        self.slurm = ScriptedSlurm()
        self.ran: list[list[str]] = []
        self.variables: dict[str, str] = {}
        section = SlurmServiceConfig.model_validate(
            {"platform": "slurm", "environment": {"OWN": "literal:1"}, "python": sys.executable}
        )
        config = agent_config(folder, WORKER)
        self.given = Given(
            *(WORKER, section, section, config, folder, None),
            lambda: pytest.fail("nothing is brought anywhere"),
            lambda: "",
        )
        label = service_label(config.experiment, "slurm-1")
        self.name = allocation_name(label, WORKER, 3)
        write_incarnation(self.given.records, Incarnation(3, "t", "ordered"))
        self.home = section.homes(config.experiment, folder) / WORKER
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / f"{self.name}.config").touch()
        self.work = self.home / "trials/7/1"
        self.work.mkdir(parents=True)
        self.files = FilesInJobs(self.given, self.slurm, self._srun)

    def _srun(self, argv: Sequence[str], environment: dict[str, str]) -> int:
        """Run the step here."""
        self.ran.append(list(argv))
        self.variables = environment
        step = argv[next(n for n, each in enumerate(argv) if not each.startswith(("-", "srun"))) :]
        return subprocess.run(step, env=environment, check=False).returncode

    def shell(self, *command: str, terminal: bool = False) -> int:
        return self.files.of(7, 1).shell(command, terminal=terminal)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_step_is_of_the_job_that_the_worker_has_now(scene: Scene) -> None:
    """Mutations: the job of another worker or another incarnation, or one that waits or is over;
    a step that takes what the trials have; secrets in a list of processes."""
    other = scene.name.replace("slurm-2", "slurm-1")
    scene.slurm.jobs = {
        11: Row(other, "RUNNING"),
        12: Row(f"{scene.name[:-1]}2", "RUNNING"),
        13: Row(scene.name, "COMPLETED"),
        14: Row(scene.name, "RUNNING"),
    }
    out = scene.work / "seen"
    code = f"import json, os; json.dump([dict(os.environ), os.getcwd()], open({str(out)!r}, 'w'))"
    assert scene.shell(sys.executable, "-c", code) == 0
    (argv,) = scene.ran
    assert argv[:5] == ["srun", "--overlap", "--jobid=14", "--nodes=1", "--ntasks=1"]
    assert "--pty" not in argv
    variables, _ = json.loads(out.read_text())
    assert variables["OWN"] == "1"
    assert variables["BEQUEATH_EXPERIMENT"] == scene.given.config.experiment
    assert "BEQUEATH_SHELL" not in variables
    assert not any("OWN=1" in each for each in argv)


def test_a_terminal_is_asked_for_and_the_exit_code_is_that_of_the_command(scene: Scene) -> None:
    scene.slurm.jobs = {14: Row(scene.name, "RUNNING")}
    assert scene.shell(sys.executable, "-c", "raise SystemExit(7)", terminal=True) == 7
    assert "--pty" in scene.ran[0]


@pytest.mark.parametrize("case", ["waits", "unlisted", "no file", "never", "away"])
def test_without_a_node_one_sentence_says_why(scene: Scene, case: str) -> None:
    wanted, kind = {
        "waits": ("its job is PENDING", PermanentBackendError),
        "unlisted": ("its job is not listed", PermanentBackendError),
        "no file": ("its job is over", PermanentBackendError),
        "never": ("never had a job", PermanentBackendError),
        "away": ("Unable to contact slurm controller", PassingBackendError),
    }[case]
    scene.slurm.jobs = {} if case == "unlisted" else {14: Row(scene.name)}
    scene.slurm.away = case == "away"
    if case == "no file":
        (scene.home / f"{scene.name}.config").unlink()
    if case == "never":
        os.unlink(scene.given.records / "allocation.json")
    with pytest.raises(BackendError) as caught:
        scene.shell("true")
    assert isinstance(caught.value, kind)
    assert wanted in caught.value.message
    assert scene.ran == []
