"""The job of an order: its command, and its script, which a real shell reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dispatcher.platforms.slurm.script import (
    array_script,
    batch_script,
    on_all_nodes,
    submit_command,
    variables_script,
)
from dispatcher.platforms.slurm.section import SlurmServiceConfig

NASTY = 'it\'s "so" $HOME `id` \\ *\nand on; é'


def command(**keys: Any) -> list[str]:
    section = SlurmServiceConfig.model_validate({"platform": "slurm", **keys})
    return submit_command(section, "lab-1", folder="/shared/lab", log="/shared/50%/agent.log")


def test_nothing_but_what_is_asked_for() -> None:
    """Mutation: Slurm may start it a second time; variables of ours go with it."""
    assert command() == [
        "sbatch",
        "--parsable",
        "--no-requeue",
        "--export=NONE",
        "--job-name=lab-1",
        "--chdir=/shared/lab",
        "--output=/shared/50%%/agent.log",
        "--open-mode=append",
    ]


def test_all_that_can_be_asked_for() -> None:
    """Mutation: a wall time is cut to whole minutes, or memory to whole MiB."""
    asked = command(
        partition=["gpu", "spare"],
        account="lab",
        qos="high",
        constraint="a100&nvlink",
        reservation="week",
        gres=["gpu:a100:2", "fast:1"],
        cpus=8,
        memory=2**30 + 1,
        wallTime="61s",
        options={"exclusive": True},
    )
    assert asked[8:] == [
        "--partition=gpu,spare",
        "--account=lab",
        "--qos=high",
        "--constraint=a100&nvlink",
        "--reservation=week",
        "--gres=gpu:a100:2,fast:1",
        "--cpus-per-task=8",
        "--mem=1025M",
        "--time=2",
        "--exclusive",
    ]


def test_several_nodes_run_one_task_each() -> None:
    section = SlurmServiceConfig.model_validate({"platform": "slurm"})
    asked = submit_command(section, "lab-1", folder="/", log="/log", nodes=4)
    assert asked[-2:] == ["--nodes=4", "--ntasks-per-node=1"]


SHOW = "import json,os,sys; print(json.dumps([sys.argv[1:], dict(os.environ), os.getpid()]))"


def run(script: bytes, folder: Path) -> tuple[list[str], dict[str, str], bool]:
    """Run a script as Slurm does; arguments, variables, and whether the script became it."""
    path = folder / "script"
    path.write_bytes(script)
    path.chmod(0o700)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "SLURM_EXPORT_ENV": "NONE"}
    process = subprocess.Popen([path], env=environment, stdout=subprocess.PIPE)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    arguments, variables, pid = json.loads(out)
    return arguments, variables, pid == process.pid


@pytest.mark.parametrize("prolog", ["", "export FROM_PROLOG=yes; read x; echo noise; false"])
def test_a_real_shell_reads_it(prolog: str, tmp_path: Path) -> None:
    """Whatever values hold. Mutation: without exec, signals end the script and not the agent."""
    stem = tmp_path / "va'r s"
    file = tmp_path / "va'r s.variables"
    file.write_bytes(variables_script({"A": NASTY, "B": ""}))
    script = batch_script(
        [sys.executable, "-c", SHOW, NASTY], stem=str(stem), prolog=prolog, title="bequeath"
    )
    arguments, variables, became = run(script, tmp_path)
    assert arguments == [NASTY, f"{stem}.config"]
    assert (variables["A"], variables["B"]) == (NASTY, "")
    assert variables["SLURM_EXPORT_ENV"] == "ALL", "steps of the job get its variables"
    assert not file.exists(), "it may hold secrets"
    assert became
    if prolog:
        assert (variables["FROM_PROLOG"], variables["BEQUEATH_PROLOG_ENDED"]) == ("yes", "1")


def test_tasks_of_an_array_find_their_own_files(tmp_path: Path) -> None:
    """Mutation: two agents in one folder, with one ticket."""
    homes = [tmp_path / name for name in ("a b", "c'd")]
    for number, home in enumerate(homes):
        (home / "logs").mkdir(parents=True)
        (home / "job.variables").write_bytes(variables_script({"NUMBER": str(number)}))
    stems = tmp_path / "stems"
    stems.write_text("".join(f"{home}/job\n" for home in homes))
    show = "import os,sys; print(os.getcwd(), os.environ['NUMBER'], *sys.argv[1:])"
    script = array_script([sys.executable, "-c", show], stems=str(stems))
    for number, home in enumerate(homes):
        variables = {"PATH": os.environ["PATH"], "SLURM_ARRAY_TASK_ID": str(number)}
        subprocess.run(["sh"], input=script, env=variables, timeout=60, check=True)
        log = (home / "logs" / "agent.log").read_text()
        assert log == f"{home} {number} {home}/job.config\n"
    variables = {"PATH": os.environ["PATH"], "SLURM_ARRAY_TASK_ID": "2"}
    ran = subprocess.run(["sh"], input=script, env=variables, timeout=60, check=False)
    assert ran.returncode != 0, "one that nobody has asked for"


def test_a_job_that_somebody_starts_again_ends_at_once(tmp_path: Path) -> None:
    script = batch_script(["touch", str(tmp_path / "ran")], stem=str(tmp_path / "gone"))
    ran = subprocess.run(["sh"], input=script, capture_output=True, timeout=60, check=False)
    assert ran.returncode != 0
    assert not (tmp_path / "ran").exists()


def test_secrets_stand_in_no_script() -> None:
    script = batch_script(["agent"], stem="/shared/lab-1")
    assert b"/shared/lab-1" in script
    assert b"hunter2" not in script
    assert b"hunter2" in variables_script({"PASSWORD": "hunter2"})


def test_each_node_runs_the_agent_as_a_task(tmp_path: Path) -> None:
    """By a real shell and an srun of ours. Mutation: the options come behind the agent."""
    srun = tmp_path / "srun"
    srun.write_text(
        '#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do echo "$1" >>options; shift; done\n'
        'SLURM_PROCID=1 exec "$@"\n'
    )
    srun.chmod(0o700)
    (tmp_path / "job.variables").write_bytes(variables_script({"A": NASTY}))
    agent = on_all_nodes([sys.executable, "-c", SHOW, NASTY], 2, 4)
    script = batch_script(agent, stem=str(tmp_path / "job"))
    path = tmp_path / "script"
    path.write_bytes(script)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_PROCID": "0"}
    out = subprocess.run(
        ["sh", path], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, check=True, timeout=60
    ).stdout
    arguments, variables, _ = json.loads(out)
    assert arguments == [NASTY, f"{tmp_path}/job.config"]
    assert (variables["SLURM_PROCID"], variables["A"]) == ("1", NASTY)
    options = (tmp_path / "options").read_text().splitlines()
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=4"} <= {*options}


def test_one_node_needs_no_step() -> None:
    assert on_all_nodes(["python", "x"], 1, 4) == ["python", "x"]
