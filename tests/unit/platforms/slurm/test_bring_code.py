"""Jobs whose nodes have neither bequeath nor the code: their scripts are run by a real shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.platforms.allocations.allocation import AllocationOrder, Gone
from dispatcher.platforms.allocations.probe import PlaceProbe, ProbeNeeds
from dispatcher.platforms.archives import pack_all
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.slurm.allocator import SlurmAllocator
from dispatcher.platforms.slurm.platform import SlurmPlatform
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from tests.unit.platforms.slurm.scripted_slurm import ScriptedSlurm
from tests.unit.platforms.slurm.test_allocator import LABEL, NAME, order_in
from trial_runtime import begin
from trial_runtime.agent.config import read_config

#: Nodes that are this machine.
HERE = {"headAddress": "127.0.0.1"}


@pytest.fixture
def slurm() -> ScriptedSlurm:
    return ScriptedSlurm()


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.fixture
def allocator_of(
    slurm: ScriptedSlurm, tmp_path: Path, shared: Path
) -> Callable[..., SlurmAllocator]:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("print(1)\n")

    def make(**keys: Any) -> SlurmAllocator:
        section = {"platform": "slurm", "sharedFolder": str(shared), "bringCode": True, **keys}
        given = ServiceGiven(
            LABEL,
            "lab",
            SlurmServiceConfig.model_validate(section),
            tmp_path,
            ("127.0.0.1", 7070),
            lambda: pack_all(
                code, tmp_path / "packed", excluded=(), most_files=99, most_bytes=1 << 20
            ),
            lambda: "",
        )
        return SlurmAllocator(given, slurm, lambda: 100.0)

    return make


def order(tmp_path: Path, name: str = NAME) -> AllocationOrder:
    """One whose agent leaves at once: nobody is at its head's address."""
    made = order_in(tmp_path, name, PYTHONPATH="/the/runtime/here", OTHER="kept")
    head = replace(made.config.head, address=f"ipc://{tmp_path}/nobody.sock")
    quick = replace(made.config, head=head, head_grace_s=0.5, weights_root=str(tmp_path))
    return AllocationOrder(name, quick, made.arguments, made.environment)


def run_job(script: bytes, tmp_path: Path, **more: str) -> tuple[int, str]:
    """Its exit code and output, on a node with an environment of its own."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **more}
    ran = subprocess.run(
        ["sh"], input=script, capture_output=True, env=variables, cwd="/", timeout=60
    )
    return ran.returncode, ran.stderr.decode()


def test_a_job_runs_the_agent_and_the_code_that_were_brought(
    allocator_of: Callable[..., SlurmAllocator],
    slurm: ScriptedSlurm,
    tmp_path: Path,
    shared: Path,
) -> None:
    allocator_of().submit(order(tmp_path))
    home = shared / "bequeath/lab/slurm"
    assert "PYTHONPATH" not in (home / f"{NAME}.variables").read_text()
    assert "OTHER=kept" in (home / f"{NAME}.variables").read_text()
    config = read_config(str(home / f"{NAME}.config"))
    (job,) = slurm.jobs.values()
    code, err = run_job(job.script, tmp_path)
    assert code == 0, err
    assert Path(config.trial.code_directory, "train.py").read_text() == "print(1)\n"
    assert str(shared) in config.runtime
    assert (Path(config.runtime) / "trial_runtime/agent/__pycache__").is_dir()
    assert config.trial.own_folders, "the code is everybody's"


def test_an_array_begins_likewise(
    allocator_of: Callable[..., SlurmAllocator], slurm: ScriptedSlurm, tmp_path: Path
) -> None:
    orders = []
    for number in range(2):
        each = order(tmp_path, f"{LABEL}-slurm-{number}-1")
        config = replace(each.config, worker=f"slurm-{number}")
        orders.append(AllocationOrder(each.name, config, each.arguments, each.environment))
    allocator_of().submit_many(orders)
    script = next(iter(slurm.jobs.values())).script
    codes = [run_job(script, tmp_path, SLURM_ARRAY_TASK_ID=str(each))[0] for each in range(2)]
    assert codes == [0, 0]


def test_why_a_node_is_unfit_is_the_reason(
    allocator_of: Callable[..., SlurmAllocator],
    slurm: ScriptedSlurm,
    tmp_path: Path,
    shared: Path,
) -> None:
    """Slurm itself knows that it failed, and no more. Mutation: its own words alone."""
    allocator = allocator_of()
    allocator.submit(order(tmp_path))
    for archive in shared.glob("bequeath/.brought/archives/*"):
        archive.write_bytes(archive.read_bytes()[:-1] + b"x")
    (job,) = slurm.jobs.values()
    code, err = run_job(job.script, tmp_path)
    assert code == begin.DAMAGED
    slurm.says(NAME, "FAILED", reason="NonZeroExitCode")
    (allocation,) = allocator.look()
    assert allocation.gone is Gone.FAILED
    assert allocation.reason == err.strip()
    assert "the archive of the runtime is damaged" in err
    home = shared / "bequeath/lab/slurm"
    assert not list(home.glob(f"{NAME}*")), "nothing of a job that has ended is left"


def test_a_job_that_was_told_of_another_head_keeps_its_code(
    allocator_of: Callable[..., SlurmAllocator], tmp_path: Path, shared: Path
) -> None:
    allocator, made = allocator_of(), order(tmp_path)
    allocator.submit(made)
    path = shared / f"bequeath/lab/slurm/{NAME}.config"
    before = read_config(str(path))
    allocator.tell(NAME, replace(made.config, epoch=2))
    assert read_config(str(path)) == replace(before, epoch=2)


def test_a_probe_is_run_before_anything_is_begun(
    allocator_of: Callable[..., SlurmAllocator],
    slurm: ScriptedSlurm,
    tmp_path: Path,
    shared: Path,
) -> None:
    """It needs nothing of what is brought, and little time. Mutation: it is begun as an agent."""
    home = shared / "bequeath/lab/slurm"
    wanted = replace(order(tmp_path).config, save_key="")
    probe = PlaceProbe(LABEL, wanted, home, ProbeNeeds(brings_code=True))
    probe.lay()
    allocator = allocator_of()
    allocator.submit(probe.order)
    (job,) = slurm.jobs.values()
    assert "--time=10" in job.command
    for archive in shared.glob("bequeath/.brought/archives/*"):
        archive.write_bytes(b"x")
    code, err = run_job(job.script, tmp_path)
    assert code == 0, err
    slurm.says(probe.name, "COMPLETED")
    (allocation,) = allocator.look()
    found = probe.look(allocation, allocator.answer(probe.order), 0.0)
    assert found is not None
    assert {each.topic: each.severity.value for each in found}["python"] == "ok"
    probe.close()
    assert not list(home.glob(f"{probe.name}*")), "nothing of it is left"


def test_it_needs_a_shared_folder(allocator_of: Callable[..., SlurmAllocator]) -> None:
    section = SlurmServiceConfig.model_validate({"platform": "slurm", "bringCode": True, **HERE})
    problems = list(SlurmPlatform().check(section, ("trainingService",), None))  # type: ignore[arg-type]
    assert [each.path for each in problems] == [("trainingService", "bringCode")]
    assert "without 'sharedFolder'" in problems[0].text


def test_python_is_that_of_the_section(
    allocator_of: Callable[..., SlurmAllocator], slurm: ScriptedSlurm, tmp_path: Path
) -> None:
    allocator_of(python="/opt/python3.9").submit(order(tmp_path))
    (job,) = slurm.jobs.values()
    assert b"exec /opt/python3.9 /" in job.script
    assert b"begin-" in job.script
    assert sys.executable.encode() not in job.script
